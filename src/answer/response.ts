/** A finished completion -> the response object of the wire. */

import type {
  ChatCompletion,
  ChatCompletionChoice,
  FinishReason,
  ResponseMessage,
  ResponseToolCall,
  Usage,
} from '../protocol/index.ts';
import type { Choice } from './choice.ts';
import type { Completion } from './completion.ts';

/** Fields that the response and every chunk share. */
export type AnswerHeader = {
  readonly id: string;
  readonly created: number; // seconds since 1970
  readonly model: string;
  /** Identity of the engine, model and adapter that answered. */
  readonly systemFingerprint: string;
  /** The seed drawn for a request that gives none; null if the request gives one. */
  readonly drawnSeed: number | null;
  readonly role: 'assistant';
  /** Text of the last message, put before the content; empty without `echo`. */
  readonly echo: string;
  /** True if the request had `functions`: the call is then given in the older form. */
  readonly usesFunctions: boolean;
  /** True if the request named the one tool to call. The call is then the answer, and it ends with the reason `stop`. */
  readonly namesTool: boolean;
  readonly promptIds: Int32Array; // text tokens of the prompt, without media
  /** Number of prompt tokens, media included. */
  readonly promptTokens: number;
  /** Number of media tokens; null if the prompt has no media. */
  readonly mediaTokens: number | null;
  /** The prompt that the template rendered; null if the response does not show it. */
  readonly promptText: string | null;
  readonly returnTokenIds: boolean;
  readonly wantsLogprobs: boolean;
  /** True to report the timings at the end, and in every chunk. */
  readonly returnTimings: boolean;
  readonly timesChunks: boolean;
  /** Parts of the constraint that are not enforced. */
  readonly warnings: readonly string[];
};

/** Returns the field `warnings`, or no field if there are none. */
export function warningsOf({ warnings }: AnswerHeader): { warnings?: string[] } {
  return warnings.length === 0 ? {} : { warnings: [...warnings] };
}

/** Returns the field `prompt_text`, or no field if the request does not ask for it. */
export function promptTextOf({ promptText }: AnswerHeader): { prompt_text?: string } {
  return promptText === null ? {} : { prompt_text: promptText };
}

/** A finished answer: a completion, or tokens that were generated elsewhere, whose times are not known. */
type Finished = Pick<
  Completion,
  'choices' | 'cachedTokens' | 'usage' | 'readsReasoning' | 'fields' | 'reportOf'
> &
  Partial<Pick<Completion, 'timings'>>;

export function toResponse(header: AnswerHeader, completion: Finished): ChatCompletion {
  const { prompt_logprobs = null, kv_transfer_params = null } = completion.fields();
  return {
    id: header.id,
    object: 'chat.completion',
    created: header.created,
    model: header.model,
    choices: completion.choices.map((choice) => toChoice(header, completion, choice)),
    service_tier: null,
    system_fingerprint: header.systemFingerprint,
    seed: header.drawnSeed,
    usage: toUsage(header, completion),
    prompt_logprobs,
    prompt_token_ids: header.returnTokenIds ? Array.from(header.promptIds) : null,
    kv_transfer_params,
    ...promptTextOf(header),
    ...(header.returnTimings ? completion.timings?.() : {}),
    ...warningsOf(header),
  };
}

/** Returns the token counts of the request, summed over its choices. The prompt counts once. */
export function toUsage(header: AnswerHeader, completion: Finished): Usage {
  const { promptTokens: prompt, mediaTokens } = header;
  let completionTokens = 0;
  let reasoningTokens = 0;
  for (const { tokenIds, reasoningTokens: inReasoning } of completion.choices) {
    completionTokens += tokenIds.length;
    reasoningTokens += inReasoning;
  }
  return {
    prompt_tokens: prompt,
    total_tokens: prompt + completionTokens,
    completion_tokens: completionTokens,
    prompt_tokens_details: {
      cached_tokens: completion.cachedTokens,
      ...(mediaTokens === null ? {} : { media_tokens: mediaTokens }),
    },
    completion_tokens_details: {
      ...completion.usage,
      ...(completion.readsReasoning ? { reasoning_tokens: reasoningTokens } : {}),
    },
  };
}

/** Returns the finish reason in the wire format. */
export function finishReason(header: AnswerHeader, choice: Choice): FinishReason {
  const { hasBrokenCall, toolCalls } = choice.message;
  const { reason, stopReason } = choice.finish!;
  if (hasBrokenCall) return stopReason === null ? 'length' : reason; // a broken call must not be executed
  if (reason === 'stop' && toolCalls.length > 0 && !header.namesTool)
    return header.usesFunctions ? 'function_call' : 'tool_calls';
  return reason;
}

/** Returns the calls in the form of the request. With `functions` there is at most one call. */
function callsOf(
  { usesFunctions }: AnswerHeader,
  calls: ResponseToolCall[],
): Pick<ResponseMessage, 'function_call' | 'tool_calls'> {
  if (!usesFunctions) return { function_call: null, tool_calls: calls };
  const [call] = calls;
  return { function_call: call?.type === 'function' ? call.function : null, tool_calls: [] };
}

function toChoice(header: AnswerHeader, completion: Finished, choice: Choice): ChatCompletionChoice {
  const { message } = choice;
  const content = header.echo + message.content;
  const reasoning = message.reasoning || null;
  const isElsewhere = reasoning !== null || message.toolCalls.length > 0;
  return {
    index: choice.index,
    message: {
      role: header.role,
      content: content === '' && isElsewhere ? null : content,
      refusal: null,
      annotations: null,
      audio: null,
      ...callsOf(header, message.toolCalls),
      reasoning,
      reasoning_content: reasoning,
    },
    logprobs: header.wantsLogprobs ? { content: choice.logprobs, refusal: null } : null,
    finish_reason: finishReason(header, choice),
    stop_reason: choice.finish!.stopReason,
    token_ids: header.returnTokenIds ? choice.tokenIds : null,
    ...completion.reportOf(choice),
  };
}
