/** A request and its prompt -> how its answer is constrained, read and ended. */
import type { Tokenizer } from '../engine/tokenizer/index.ts';
import type { ValidChatRequest } from '../protocol/index.ts';
import {
  type MessageFormat,
  type MessagePlan,
  planMessage,
  planReasoning,
} from '../template/chat-format/index.ts';
import { type ConstraintPlan, planConstraint } from './constraint.ts';
import type { Prompt } from './prompt.ts';
import { StopStrings } from './stop-strings.ts';
import type { StopRules } from './text-out.ts';

/** A prompt, and the format in which the model writes its answer. */
export type OpenedPrompt = { readonly format: MessageFormat; readonly prompt: Prompt };

type AnswerPlan = Omit<ConstraintPlan, 'format'> & {
  readonly message: MessagePlan;
  readonly rules: StopRules;
};

/** Number of trailing prompt characters searched for an open reasoning marker. */
const PROMPT_TAIL = 256;

/** Plans an answer. Nothing is compiled. `maxTokens`: the most tokens that it may have. */
export function planAnswer(
  request: ValidChatRequest,
  tokenizer: Tokenizer,
  opened: OpenedPrompt,
  maxTokens: number,
): AnswerPlan {
  const reasoning = planReasoning(opened.format, request, opened.prompt.text.slice(-PROMPT_TAIL));
  const isInside = reasoning?.startsInside ?? false;
  const { format, ...constraint } = planConstraint(request, opened.format, isInside);
  const message = planMessage(format, request, reasoning);
  const isParsed = message.tools !== null || message.reasoning !== null;
  const markers = isParsed ? format.markerIds : new Set<number>();
  const hasMessages = message.reasoning?.format.kind === 'messages';
  return { ...constraint, message, rules: stopRules(request, tokenizer, maxTokens, markers, hasMessages) };
}

function stopRules(
  request: ValidChatRequest,
  tokenizer: Tokenizer,
  maxTokens: number,
  shownSpecials: ReadonlySet<number>,
  hasMessages: boolean,
): StopRules {
  const decoder = new TextDecoder();
  const ends = hasMessages ? [...tokenizer.endIds].filter((id) => shownSpecials.has(id)) : [];
  return {
    stops: request.stop.length > 0 ? new StopStrings(request.stop) : null,
    stopIds: new Set(request.stop_token_ids),
    endIds: tokenizer.endIds,
    eosId: tokenizer.eosId,
    ignoreEos: request.ignore_eos,
    minTokens: request.min_tokens,
    maxTokens,
    includeStop: request.include_stop_str_in_output,
    skipSpecial: request.skip_special_tokens,
    shownSpecials,
    spacesBetween: request.spaces_between_special_tokens,
    messageEnds: new Map(ends.map((id) => [id, decoder.decode(tokenizer.bytesOf(id))])),
  };
}
