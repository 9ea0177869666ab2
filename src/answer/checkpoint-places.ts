/**
 * The tokens of a prompt -> positions where its messages begin. The next prompt of the conversation, or an edited one, differs from this
 * one only behind such a position.
 */
import type { Tokenizer } from '../engine/tokenizer/index.ts';

/** Upper limit of the tokens that open an answer in a template without special tokens. */
const OPENING_TOKENS = 16;

/**
 * Returns the positions before the answer, before the last message and behind the first message (the system's), and those of `shared`.
 * Templates mark messages by special tokens: the last special token of a prompt stands where the answer begins, and the same token stands
 * at the same place in each message.
 */
export function checkpointPlaces(
  prompt: Int32Array,
  tokenizer: Pick<Tokenizer, 'isSpecial'>,
  shared: readonly number[] = [],
): number[] {
  const places = [...messagePlaces(prompt, tokenizer), ...shared.filter((place) => place < prompt.length)];
  return [...new Set(places)].sort((a, b) => a - b);
}

function messagePlaces(prompt: Int32Array, { isSpecial }: Pick<Tokenizer, 'isSpecial'>): number[] {
  const last = prompt.findLastIndex((id) => id >= 0 && isSpecial(id));
  if (last <= 0) return prompt.length > OPENING_TOKENS ? [prompt.length - OPENING_TOKENS] : [];
  const before = prompt.lastIndexOf(prompt[last]!, last - 1);
  const first = prompt.indexOf(prompt[last]!, 1);
  return [first, before, last].filter((place) => place > 0);
}
