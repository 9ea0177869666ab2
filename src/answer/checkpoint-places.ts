/** The tokens of a prompt -> where its messages begin: there the next prompt of a conversation, or an edited one, parts from it. */
import type { Tokenizer } from '../tokenizer/index.ts';

/**
 * Before the answer, before the last message, and behind the first one, which is the system's. Templates mark messages by special tokens:
 * the last one of a prompt stands where the answer begins, and at the same place of each message.
 */
export function checkpointPlaces(prompt: Int32Array, { isSpecial }: Tokenizer): number[] {
  const last = prompt.findLastIndex((id) => id >= 0 && isSpecial(id));
  if (last <= 0) return [];
  const before = prompt.lastIndexOf(prompt[last]!, last - 1);
  const first = prompt.indexOf(prompt[last]!, 1);
  return [...new Set([first, before, last])].filter((place) => place > 0).sort((a, b) => a - b);
}
