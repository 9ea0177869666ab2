/**
 * Finished answers of one model -> indexes that drafts are taken from: one per adapter and `cache_salt`, together within a limit in bytes.
 */
import { type Handle, loadAddon } from '../engine/native/index.ts';

/** Number of prompt tokens stored before each answer, so that the first tokens of an answer can be found too. */
const PROMPT_TAIL = 16;
/** Number of tokens before a draft that must match. The same in every index. */
const MIN_MATCH = 3;

export class AnswerIndexes {
  readonly #maxBytes: number;
  readonly #indexes = new Map<string, { readonly handle: Handle; bytes: number }>(); // least recently used first
  #bytes = 0;

  /** @param maxBytes limit of all indexes together; 0 keeps none */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Returns the index of a key, created if needed. Returns null if `maxBytes` is 0. */
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

  /** Adds an answer and the tail of its prompt to the index of a key. Drops the least recently used indexes while all exceed `maxBytes`. */
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
