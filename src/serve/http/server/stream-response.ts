/** An answer -> the response that sends it, as a whole or as a stream. The tokens of the answer count for the limits of its client. */
import { EVENT_HEADERS } from '../../../protocol/index.ts';
import type { AnswerStream } from '../../../protocol/service/index.ts';
import type { RequestContext } from './context.ts';
import { chunkEvents, type EventFormat, toEventStream } from './event-stream.ts';
import { json, type ServedResponse } from './wire.ts';

/** Token counts of answers and chunks, in the fields of every wire format. */
type Usage = {
  readonly total_tokens?: number;
  readonly input_tokens?: number;
  readonly output_tokens?: number;
};

/** Returns the response for an answer, or for the stream of its parts in this format. */
export function answerResponse(
  answer: object | AnswerStream<unknown>,
  context: RequestContext,
  format: EventFormat = chunkEvents,
): ServedResponse {
  if (Symbol.asyncIterator in answer) return eventStreamResponse(answer, context, format);
  context.charge(tokensOf(answer));
  return json(answer);
}

function eventStreamResponse(
  parts: AnswerStream<unknown>,
  { call, toError, beginStream, charge }: RequestContext,
  format: EventFormat,
): ServedResponse {
  const hooks = { signal: call.signal, toError, onEnd: beginStream(), onChunk: counterOf(charge) };
  return {
    status: 200,
    headers: { ...EVENT_HEADERS, 'content-type': format.type },
    body: toEventStream(parts, hooks, format),
  };
}

/** Returns a function that counts the tokens of the parts of a stream. A part without a usage counts as one token. */
export function counterOf(charge: RequestContext['charge']): (part: unknown) => void {
  let charged = 0;
  return (part) => {
    const total = usageOf(part) ? Math.max(charged, tokensOf(part)) : charged + 1;
    charge(total - charged);
    charged = total;
  };
}

function tokensOf(part: unknown): number {
  const { total_tokens, input_tokens = 0, output_tokens = 0 } = usageOf(part) ?? {};
  return total_tokens ?? input_tokens + output_tokens;
}

/**
 * Returns the usage in a part. It is nested in the first event of the messages API and the last one of the responses API; the last line of
 * Ollama and the last part of llama.cpp have the counts as fields.
 */
function usageOf(part: unknown): Usage | null | undefined {
  const { usage, response, message, prompt_eval_count, eval_count, tokens_evaluated, tokens_predicted } =
    part as {
      usage?: Usage | null;
      response?: { usage?: Usage | null };
      message?: { usage?: Usage | null };
      prompt_eval_count?: number;
      eval_count?: number;
      tokens_evaluated?: number;
      tokens_predicted?: number;
    };
  if (eval_count !== undefined) return { input_tokens: prompt_eval_count ?? 0, output_tokens: eval_count };
  if (tokens_predicted !== undefined)
    return { input_tokens: tokens_evaluated ?? 0, output_tokens: tokens_predicted };
  return usage ?? response?.usage ?? message?.usage;
}
