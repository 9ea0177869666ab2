/**
 * Beginnings of prompts -> which of them have a checkpoint: what cannot be cut of a cache, kept to come back to. The one place that
 * decides which are kept: the most recently used ones, as many as fit into their bytes.
 */
import { PrefixCache } from './prefix-cache.ts';

/** A checkpoint behind the first `length` tokens of a prompt. */
export type StateCheckpoint = { readonly number: number; readonly length: number };

/** Fewer tokens than this are computed again rather than kept. */
export const MIN_CHECKPOINT_TOKENS = 32;

type Kept = { readonly key: string; readonly tokens: Int32Array; readonly bytes: number };

/** The checkpoints of one context. */
export class StateCheckpoints {
  readonly #limit: number;
  readonly #tree = new PrefixCache();
  readonly #kept = new Map<number, Kept>(); // by number, least recently used first
  #next = 0;
  #bytes = 0;

  /** `limit`: bytes of all of them at most. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#kept.size;
  }

  /** The number of the next one. */
  begin(): number {
    return this.#next++;
  }

  /** The one behind the most of these tokens, or null. */
  find(key: string, tokens: Int32Array): StateCheckpoint | null {
    const number = this.#tree.ends(key, tokens).at(-1);
    return number === undefined ? null : { number, length: this.#tree.lengthOf(number) };
  }

  /** Records that it is used now. */
  touch(number: number): void {
    const kept = this.#kept.get(number);
    if (kept && this.#kept.delete(number)) this.#kept.set(number, kept);
  }

  /** Keeps one after all of these tokens. Returns the numbers of those that are dropped: its own, if it does not fit alone. */
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

  /** Drops those whose tokens nothing holds any more, and returns their numbers. */
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
