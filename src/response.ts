/** A finished completion -> the response object of the wire. */
import type { Choice } from './choice.ts';
import type { Completion } from './completion.ts';
import type { ChatCompletion, ChatCompletionChoice, Usage } from './protocol/index.ts';

/** What the answer repeats from the request, the same in a response and in every chunk. */
export type AnswerHeader = {
  readonly id: string;
  readonly created: number; // seconds since 1970
  readonly model: string;
  /** Engine, model and adapter that answered. */
  readonly systemFingerprint: string;
  readonly role: 'assistant';
  readonly promptIds: Int32Array;
  readonly returnTokenIds: boolean;
  readonly wantsLogprobs: boolean;
};

/** The whole answer at once. */
export function toResponse(header: AnswerHeader, completion: Completion): ChatCompletion {
  return {
    id: header.id,
    object: 'chat.completion',
    created: header.created,
    model: header.model,
    choices: completion.choices.map((choice) => toChoice(header, choice)),
    service_tier: null,
    system_fingerprint: header.systemFingerprint,
    usage: toUsage(header, completion),
    prompt_logprobs: null,
    prompt_token_ids: header.returnTokenIds ? Array.from(header.promptIds) : null,
    kv_transfer_params: null,
  };
}

/** Tokens of the request, summed over its choices. The prompt counts once. */
export function toUsage(header: AnswerHeader, completion: Completion): Usage {
  const prompt = header.promptIds.length;
  let completionTokens = 0;
  for (const choice of completion.choices) completionTokens += choice.tokenIds.length;
  return {
    prompt_tokens: prompt,
    total_tokens: prompt + completionTokens,
    completion_tokens: completionTokens,
    prompt_tokens_details: { cached_tokens: completion.cachedTokens },
  };
}

function toChoice(header: AnswerHeader, choice: Choice): ChatCompletionChoice {
  return {
    index: choice.index,
    message: {
      role: header.role,
      content: choice.text,
      refusal: null,
      annotations: null,
      audio: null,
      function_call: null,
      tool_calls: [],
      reasoning: null,
      reasoning_content: null,
    },
    logprobs: header.wantsLogprobs ? { content: choice.logprobs, refusal: null } : null,
    finish_reason: choice.finish!.reason,
    stop_reason: choice.finish!.stopReason,
    token_ids: header.returnTokenIds ? choice.tokenIds : null,
  };
}
