/** The drafts of one sequence and what became of them -> how many are worth a row. A draft never decides what is sampled. */
import type { Handle } from '../native/index.ts';

/** What drafts for a sequence. */
export type SpeculationOptions = {
  /** As the addon made it. */
  readonly drafter: Handle;
  /** Drafts of one step at most. */
  readonly maxTokens: number;
  /** How often a draft is thought to be right before any was seen, 0 to 1. */
  readonly trust: number;
};

/** Weight of the newest draft in the share of drafts that are right. */
const NEWEST = 0.2;
const NOTHING = new Int32Array(0);

/**
 * Drafts are made in every step, and compared with the tokens that come. Only those that are worth it get a row of their own,
 * so text without repeats pays nothing.
 */
export class Speculation {
  readonly drafter: Handle;
  readonly maxTokens: number;
  /** Set while later rows could be sampled under other rules than those of the step: no drafts are checked. */
  isPaused = false;
  /** Drafts that the step after the coming one checks at most. */
  limit = 0;
  /** Drafts that had a row, and those of them that were sampled. */
  drafted = 0;
  accepted = 0;
  /** Share of the drafts that were right, of those behind right ones. */
  rate: number;
  #proposed: Int32Array = NOTHING;
  #at = 0; // in `proposed`: the draft of the next token
  #checked = 0; // of the proposed ones from there on, how many have a row

  constructor({ drafter, maxTokens, trust }: SpeculationOptions) {
    this.drafter = drafter;
    this.maxTokens = maxTokens;
    this.rate = trust;
  }

  /** Takes the drafts that follow the last token. */
  propose(drafts: Int32Array): void {
    this.#proposed = drafts;
    this.#at = 0;
    this.#checked = 0;
  }

  /** The drafts that a step should check: `most` of them at most. */
  wanted(most: number): Int32Array {
    if (this.isPaused) return NOTHING;
    return this.#proposed.subarray(this.#at, this.#at + Math.max(0, Math.min(most, this.limit)));
  }

  /** The first `count` drafts are in the cache, and their rows were sampled. */
  check(count: number): void {
    this.#checked = count;
    this.drafted += count;
  }

  /** Hears of the next token. Returns whether it was drafted and stands in the cache already. */
  observe(token: number): boolean {
    if (this.#at >= this.#proposed.length) {
      this.#checked = 0;
      return false;
    }
    const isRight = this.#proposed[this.#at] === token;
    this.rate += NEWEST * ((isRight ? 1 : 0) - this.rate);
    if (!isRight) {
      this.propose(NOTHING);
      return false;
    }
    this.#at += 1;
    if (this.#checked === 0) return false;
    this.#checked -= 1;
    this.accepted += 1;
    return true;
  }
}
