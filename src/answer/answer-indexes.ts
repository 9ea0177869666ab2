/** Finished answers of one model -> indexes that drafts come from: one per adapter and `cache_salt`, all within a bound. */
import { type Handle, loadAddon } from '../native/index.ts';

/** Tokens of the prompt that are kept before an answer: they find its first tokens. */
const PROMPT_TAIL = 16;
/** Tokens before a draft that must match, in every index. */
const MIN_MATCH = 3;

export class AnswerIndexes {
  readonly #maxBytes: number;
  readonly #indexes = new Map<string, { readonly handle: Handle; bytes: number }>(); // least recently used first
  #bytes = 0;

  /** @param maxBytes of all indexes together */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The index of a key; null: none may be kept. */
  get(key: string): Handle | null {
    if (this.#maxBytes === 0) return null;
    const index = this.#indexes.get(key) ?? {
      handle: loadAddon().createAnswerIndex(MIN_MATCH, this.#maxBytes),
      bytes: 0,
    };
    this.#indexes.delete(key);
    this.#indexes.set(key, index);
    return index.handle;
  }

  /** Adds the answer of a drafter's sequence. The least recently used indexes are dropped. */
  add(key: string, prompt: Int32Array, answer: readonly number[], drafter: Handle): void {
    if (!this.get(key)) return;
    const tail = prompt.subarray(-PROMPT_TAIL);
    const tokens = new Int32Array(tail.length + answer.length);
    tokens.set(tail);
    tokens.set(answer, tail.length);
    const index = this.#indexes.get(key)!;
    const bytes = loadAddon().addAnswer(index.handle, tokens, {
      drafter,
      from: prompt.length - tail.length,
    });
    this.#bytes += bytes - index.bytes;
    index.bytes = bytes;
    for (const [old, { bytes: freed }] of this.#indexes) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#indexes.delete(old);
      this.#bytes -= freed;
    }
  }
}
