/** `reasoning.max_tokens` of a request -> how much a choice may reason, and the tokens that then end it. */
import type { MessagePlan } from '../models/index.ts';
import { reasoningEnd } from '../reasoning/index.ts';
import type { Tokenizer } from '../tokenizer/index.ts';

/** How much a choice may reason. */
export type ThinkingBudget = {
  /** Tokens between the markers. A character that is half written may take a few more. */
  readonly maxTokens: number;
  /** The tokens that end the reasoning. */
  readonly end: Int32Array;
};

/** The budget of each choice; null: none, or the model marks no reasoning. `coversReasoning`: a grammar writes what follows the end marker. */
export async function planThinkingBudget(
  maxTokens: number | null,
  { reasoning }: MessagePlan,
  tokenizer: Tokenizer,
  coversReasoning: boolean,
): Promise<ThinkingBudget | null> {
  if (maxTokens === null || reasoning === null) return null;
  const text = coversReasoning ? reasoning.format.end : reasoningEnd(reasoning.format);
  const end = await tokenizer.encode(text, {
    addSpecial: false,
    parseSpecial: true,
  });
  return { maxTokens, end };
}
