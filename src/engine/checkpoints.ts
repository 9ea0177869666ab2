/**
 * Beginnings of prompts -> their checkpoints, which keep the part of a cache that cannot be cut, to return to it. This is the only place
 * that decides which are kept: the most recently used ones that fit into the limit of bytes.
 */
import { PrefixCache } from './prefix-cache.ts';

/** A checkpoint after the first `length` tokens of a prompt. */
export type StateCheckpoint = { readonly number: number; readonly length: number };

/** Fewer tokens than this are computed again instead of kept. */
export const MIN_CHECKPOINT_TOKENS = 32;

type Kept = { readonly key: string; readonly tokens: Int32Array; readonly bytes: number };

/** The checkpoints of one context. */
export class StateCheckpoints {
  readonly #limit: number;
  readonly #tree = new PrefixCache();
  readonly #kept = new Map<number, Kept>(); // by number, least recently used first
  #next = 0;
  #bytes = 0;

  /** `limit` is the maximum number of bytes of all checkpoints. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#kept.size;
  }

  /** Returns the number of the next checkpoint. */
  begin(): number {
    return this.#next++;
  }

  /** Returns the checkpoint after the most of these tokens, or null. */
  find(key: string, tokens: Int32Array): StateCheckpoint | null {
    const number = this.#tree.ends(key, tokens).at(-1);
    return number === undefined ? null : { number, length: this.#tree.lengthOf(number) };
  }

  /** Marks a checkpoint as the most recently used one. */
  touch(number: number): void {
    const kept = this.#kept.get(number);
    if (kept && this.#kept.delete(number)) this.#kept.set(number, kept);
  }

  /** Keeps a checkpoint after all of these tokens. Returns the numbers of dropped ones, which include its own if it is too large. */
  add(number: number, key: string, tokens: Int32Array, bytes: number): number[] {
    if (bytes > this.#limit) return [number];
    const dropped: number[] = [];
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes + bytes <= this.#limit) break;
      this.#drop(oldest);
      dropped.push(oldest);
    }
    this.#kept.set(number, { key, tokens, bytes });
    this.#bytes += bytes;
    this.#tree.insert(key, number, tokens);
    return dropped;
  }

  /** Drops the checkpoints whose tokens no slot holds any more, and returns their numbers. */
  dropUnless(isHeld: (key: string, tokens: Int32Array) => boolean): number[] {
    const dropped = [...this.#kept].filter(([, { key, tokens }]) => !isHeld(key, tokens));
    for (const [number] of dropped) this.#drop(number);
    return dropped.map(([number]) => number);
  }

  #drop(number: number): void {
    this.#bytes -= this.#kept.get(number)!.bytes;
    this.#kept.delete(number);
    this.#tree.remove(number);
  }
}
