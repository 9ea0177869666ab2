/** `reasoning.max_tokens` of a request -> reasoning that ends when they are spent: its end is forced. */
import type { Listener } from '../engine/index.ts';
import type { MessagePlan } from '../models/index.ts';
import { reasoningEnd } from '../reasoning/index.ts';
import type { Tokenizer } from '../tokenizer/index.ts';
import type { Choice } from './choice.ts';
import type { Place } from './context-shift.ts';

/** How much a choice may reason. */
export type ThinkingBudget = {
  /** Tokens between the markers. A character that is half written may take a few more. */
  readonly maxTokens: number;
  /** The tokens that end the reasoning. */
  readonly end: Int32Array;
};

/** The budget of each choice; null: none, or the model marks no reasoning. */
export async function planThinkingBudget(
  maxTokens: number | null,
  { reasoning }: MessagePlan,
  tokenizer: Tokenizer,
): Promise<ThinkingBudget | null> {
  if (maxTokens === null || reasoning === null) return null;
  const end = await tokenizer.encode(reasoningEnd(reasoning.format), {
    addSpecial: false,
    parseSpecial: true,
  });
  return { maxTokens, end };
}

/**
 * Holds a choice to its budget. Drafts are checked only as far as the budget goes. Where reasoning begins a second time behind the
 * answer, a draft of its beginning may be followed by a few tokens of it.
 */
export function holdToBudget(
  place: Place,
  choice: Choice,
  listener: Listener,
  { maxTokens, end }: ThinkingBudget,
): Listener {
  let isEnding = false;
  const check = (): void => {
    const { message, reasoningTokens } = choice;
    if (!message.isReasoning) isEnding = false;
    const left = maxTokens - reasoningTokens;
    if (left <= 0 && !isEnding && choice.canEndReasoning) {
      isEnding = true;
      place.sequence.sampler.force(end);
    }
    place.sequence.outputsBeforeForced =
      message.isReasoning || choice.tokenIds.length === 0 ? Math.max(0, left) : Infinity;
  };
  check();
  return {
    onToken(token, rows, row, isFinal) {
      const hasEnded = listener.onToken(token, rows, row, isFinal);
      choice.catchUp();
      check();
      return hasEnded;
    },
    onComplete: () => listener.onComplete(),
    onError: (error) => listener.onError(error),
  };
}
