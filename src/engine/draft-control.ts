/** Durations of steps, and how often drafts are right -> how many drafts the next step should check. */
import type { BackendLimits } from '../backends/index.ts';
import type { Plan } from './scheduler.ts';
import type { Sequence } from './sequence.ts';

/** A step with drafts must promise so many times the tokens a second of one without. */
const LEAST_GAIN = 1.05;
/** A row more is thought to cost this share of a step until it was tried. */
const UNKNOWN_ROW = 0.04;
/** Weight of the newest step in the cost of its number of rows. */
const NEWEST_COST = 0.25;
/** After so many steps a cost is tried again. */
const FORGET_AFTER = 512;
/** Sequences whose drafts are right less often are left out. */
const LEAST_RATE = 0.2;

type Cost = { ms: number; seen: number };

/** Decides for one engine. */
export class DraftControl {
  readonly #mostRows: number;
  readonly #costs = new Map<number, Cost>(); // by rows
  #steps = 0;

  constructor({ batchTokens, outputRows }: Pick<BackendLimits, 'batchTokens' | 'outputRows'>) {
    this.#mostRows = Math.min(batchTokens, outputRows);
  }

  /** Records how long a plan took, if it had nothing but generated tokens and drafts. */
  record({ entries }: Plan, ms: number): void {
    let rows = 0;
    for (const { sequence, start, count, drafts } of entries) {
      if (start < sequence.group.prompt.length) return;
      rows += count + drafts.length;
    }
    this.#steps += 1;
    const cost = this.#costs.get(rows);
    if (!cost || this.#steps - cost.seen > FORGET_AFTER) this.#costs.set(rows, { ms, seen: this.#steps });
    else {
      // A step that was held up by something else says little.
      cost.ms += NEWEST_COST * (Math.min(ms, 2 * cost.ms) - cost.ms);
      cost.seen = this.#steps;
    }
  }

  /** Sets the limits of all sequences of a plan: how many drafts they check in the step after it. */
  plan({ entries }: Plan): void {
    const gains: { readonly sequence: Sequence; readonly gain: number }[] = [];
    let rows = 0;
    for (const { samples } of entries) {
      rows += samples.length;
      for (const sequence of samples) {
        const { speculation } = sequence;
        if (!speculation) continue;
        speculation.limit = 0;
        if (speculation.isPaused || speculation.rate < LEAST_RATE) continue;
        const most = Math.min(speculation.maxTokens, sequence.outputsLeft - 2);
        for (let i = 0, gain = speculation.rate; i < most; i++, gain *= speculation.rate)
          gains.push({ sequence, gain });
      }
    }
    if (gains.length === 0) return;
    gains.sort((a, b) => b.gain - a.gain);
    const count = this.#bestCount(rows, gains);
    for (const { sequence } of gains.slice(0, count)) sequence.speculation!.limit += 1;
  }

  /** How many of these drafts promise the most tokens a second. */
  #bestCount(rows: number, gains: readonly { readonly gain: number }[]): number {
    const most = Math.min(gains.length, this.#mostRows - rows);
    let best = 0;
    let bestSpeed = (LEAST_GAIN * rows) / this.#costOf(rows);
    let tokens = rows;
    for (let count = 1; count <= most; count++) {
      tokens += gains[count - 1]!.gain;
      const speed = tokens / this.#costOf(rows + count);
      if (speed <= bestSpeed) continue;
      best = count;
      bestSpeed = speed;
    }
    return best;
  }

  /** What a step of so many rows costs: measured, or between measured ones, or guessed from the largest one below. */
  #costOf(rows: number): number {
    const known = this.#costs.get(rows);
    if (known && this.#steps - known.seen <= FORGET_AFTER) return known.ms;
    let below = 0;
    let above = Number.POSITIVE_INFINITY;
    for (const [at, { seen }] of this.#costs) {
      if (at < rows && at > below) below = at;
      if (at > rows && at < above && this.#steps - seen <= FORGET_AFTER) above = at;
    }
    if (below === 0) {
      if (known) return known.ms;
      return Number.isFinite(above) ? this.#costs.get(above)!.ms / (1 + UNKNOWN_ROW * (above - rows)) : 1;
    }
    const low = this.#costs.get(below)!.ms;
    if (!Number.isFinite(above)) return low * (1 + UNKNOWN_ROW * (rows - below));
    const share = (rows - below) / (above - below);
    return low + share * (this.#costs.get(above)!.ms - low);
  }
}
