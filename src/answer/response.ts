/** A finished completion -> the response object of the wire. */

import {
  type ChatCompletion,
  type ChatCompletionChoice,
  type FinishReason,
  type JsonObject,
  type ResponseMessage,
  type ResponseToolCall,
  toRoutedExperts,
  type Usage,
} from '../protocol/index.ts';
import type { Choice } from './choice.ts';
import type { Completion } from './completion.ts';

/** What the answer repeats from the request, the same in a response and in every chunk. */
export type AnswerHeader = {
  readonly id: string;
  readonly created: number; // seconds since 1970
  readonly model: string;
  /** Engine, model and adapter that answered. */
  readonly systemFingerprint: string;
  /** The seed that was drawn because the request had none. */
  readonly drawnSeed: number | null;
  readonly role: 'assistant';
  /** Text of the last message that the content begins with; empty without `echo`. */
  readonly echo: string;
  /** The request had `functions`: the call is given in the older form. */
  readonly usesFunctions: boolean;
  /** The request named the one tool to call: then the call is the answer, and its end an ordinary stop. */
  readonly namesTool: boolean;
  readonly promptIds: Int32Array; // of its text
  /** Leading tokens that stay when the context is full; null: none is dropped. */
  readonly keptTokens: number | null;
  /** With those of media. */
  readonly promptTokens: number;
  /** Null: the prompt has no media. */
  readonly mediaTokens: number | null;
  readonly returnTokenIds: boolean;
  readonly wantsLogprobs: boolean;
  /** What the answer is not held to. */
  readonly warnings: readonly string[];
};

/** The field of warnings, if there are any. */
export function warningsOf({ warnings }: AnswerHeader): { warnings?: string[] } {
  return warnings.length === 0 ? {} : { warnings: [...warnings] };
}

export function toResponse(
  header: AnswerHeader,
  completion: Completion,
  kvTransferParams: JsonObject | null = null,
): ChatCompletion {
  return {
    id: header.id,
    object: 'chat.completion',
    created: header.created,
    model: header.model,
    choices: completion.choices.map((choice) => toChoice(header, choice)),
    service_tier: null,
    system_fingerprint: header.systemFingerprint,
    seed: header.drawnSeed,
    usage: toUsage(header, completion),
    prompt_logprobs: completion.promptLogprobs(),
    prompt_token_ids: header.returnTokenIds ? Array.from(header.promptIds) : null,
    kv_transfer_params: kvTransferParams as ChatCompletion['kv_transfer_params'],
    ...warningsOf(header),
  };
}

/** Tokens of the request, summed over its choices. The prompt counts once. */
export function toUsage(header: AnswerHeader, completion: Completion): Usage {
  const { promptTokens: prompt, mediaTokens } = header;
  const { drafted, accepted } = completion.drafts;
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
      accepted_prediction_tokens: accepted,
      rejected_prediction_tokens: drafted - accepted,
      ...(completion.readsReasoning ? { reasoning_tokens: reasoningTokens } : {}),
    },
  };
}

/** What was dropped of it, where the request lets that happen. */
export function droppedOf(
  { keptTokens }: AnswerHeader,
  { droppedTokens }: Choice,
): Pick<ChatCompletionChoice, 'context_shift'> {
  if (keptTokens === null) return {};
  return { context_shift: { kept_tokens: keptTokens, dropped_tokens: droppedTokens } };
}

/** The experts of the prompt and of the choice, where the request asks for them. */
export function expertsOf({ experts, tokenIds }: Choice): Pick<ChatCompletionChoice, 'routed_experts'> {
  if (!experts) return {};
  const { layers, used, ids } = experts.read(tokenIds.length);
  return { routed_experts: toRoutedExperts(layers, used, ids) };
}

/** Why a choice ended, as the wire says it. */
export function finishReason(header: AnswerHeader, choice: Choice): FinishReason {
  const { hasBrokenCall, toolCalls } = choice.message;
  const { reason, stopReason } = choice.finish!;
  if (hasBrokenCall) return stopReason === null ? 'length' : 'stop'; // never a call to carry out
  if (reason === 'stop' && toolCalls.length > 0 && !header.namesTool)
    return header.usesFunctions ? 'function_call' : 'tool_calls';
  return reason;
}

/** The calls in the form of the request. Of functions there is one call at most. */
function callsOf(
  { usesFunctions }: AnswerHeader,
  calls: ResponseToolCall[],
): Pick<ResponseMessage, 'function_call' | 'tool_calls'> {
  if (!usesFunctions) return { function_call: null, tool_calls: calls };
  const [call] = calls;
  return { function_call: call?.type === 'function' ? call.function : null, tool_calls: [] };
}

function toChoice(header: AnswerHeader, choice: Choice): ChatCompletionChoice {
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
    ...expertsOf(choice),
    ...droppedOf(header, choice),
  };
}
