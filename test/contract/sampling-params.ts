/** A chat completion request -> the sampling parameters with which the tokens of its prompt are continued in the same way. */
import type { ChatCompletionRequest } from '../../src/protocol/index.ts';
import { TEXT_FIELDS } from '../../src/protocol/schemas/text-completion.ts';

/** Fields of the request for tokens itself, or of its answer, which always has ids. */
const OWN = [
  ...['model', 'stream', 'stream_options', 'cache_salt', 'priority', 'kv_transfer_params'],
  ...['request_id', 'return_token_ids', 'return_tokens_as_token_ids'],
];

export function samplingParams(request: ChatCompletionRequest): Record<string, unknown> {
  const shared = Object.entries(request).filter(
    ([field, value]) => TEXT_FIELDS.includes(field) && !OWN.includes(field) && value != null,
  );
  return {
    ...Object.fromEntries(shared),
    ...(request.n == null ? {} : { n: request.n }),
    max_tokens: request.max_completion_tokens ?? request.max_tokens ?? null,
    ...(request.logprobs ? { logprobs: request.top_logprobs ?? 0 } : {}),
  };
}
