/** Durations of steps, and how often drafts are right -> how many drafts the next step should check. */
import type { BackendLimits, StepResult } from '../backends/index.ts';
import type { Plan } from './plan.ts';
import type { Sequence } from './sequence.ts';
import { LAST_DRAFT } from './speculation.ts';
import { StepCosts } from './step-costs.ts';

/** A step with drafts must promise this many times the tokens per second of one without. */
const LEAST_GAIN = 1.05;
/** Drafts that are less likely to count are left out. */
const LEAST_RATE = 0.2;
/** A draft of a model is thought to cost this share of a step until it was tried. */
const UNKNOWN_DRAFT = 0.2;
/** A draft model that has more tokens to compute for each draft is reading prompts. */
const DRAFT_TOKENS = 4;

/** One draft more for a sequence: how likely it counts. */
type Gain = { readonly sequence: Sequence; readonly depth: number; readonly gain: number };

/** Decides for one engine. */
export class DraftControl {
  readonly #mostRows: number;
  readonly #mostDrafts: number; // of a sequence: wrong ones must be taken back
  readonly #steps = new StepCosts(); // by rows
  readonly #drafts = new StepCosts(); // passes of draft models, by sequences

  constructor({
    batchTokens,
    outputRows,
    rollbackTokens,
  }: Pick<BackendLimits, 'batchTokens' | 'outputRows' | 'rollbackTokens'>) {
    this.#mostRows = Math.min(batchTokens, outputRows);
    this.#mostDrafts = rollbackTokens;
  }

  /** Records how long a plan took, if it had nothing but generated tokens and drafts; and what drafting took of that. */
  record({ entries }: Plan, ms: number, drafting: StepResult['drafting']): void {
    if (drafting && drafting.tokens <= DRAFT_TOKENS * drafting.passes * drafting.sequences)
      this.#drafts.record(drafting.sequences, drafting.ms / drafting.passes);
    let rows = 0;
    for (const { sequence, start, count, drafts } of entries) {
      if (start < sequence.group.prompt.length) return;
      rows += count + drafts.length;
    }
    this.#steps.record(rows, ms - (drafting?.ms ?? 0));
  }

  /** Sets the limits of all sequences of a plan: how many drafts they check in the step after it. */
  plan({ entries }: Plan): void {
    const drafting: Sequence[] = [];
    let rows = 0;
    for (const { samples } of entries) {
      rows += samples.length;
      for (const sequence of samples) {
        const { speculation } = sequence;
        if (!speculation) continue;
        speculation.limits.fill(0);
        const waits = speculation.usesModel && sequence.outputCount === 0; // the first token does not wait for another model
        if (!speculation.isPaused && !waits) drafting.push(sequence);
      }
    }
    for (const last of Object.values(LAST_DRAFT)) this.#share(drafting, rows, last);
    let left = this.#mostRows - rows;
    for (const { speculation, outputsLeft } of drafting) {
      const { limits, limit, usesModel } = speculation!;
      if (usesModel && outputsLeft > 2 && speculation!.isDue(limit > 0)) limits.fill(1);
      // What became of the last drafts may differ from sequence to sequence.
      for (const [last, limit] of limits.entries()) limits[last] = Math.min(limit, left);
      left -= Math.max(...limits);
    }
  }

  /** Sets the limits that hold if this became of the last draft of each sequence. */
  #share(drafting: readonly Sequence[], rows: number, last: 0 | 1 | 2): void {
    const gains: Gain[] = [];
    for (const sequence of drafting) {
      const { maxTokens, rates, isKnown } = sequence.speculation!;
      const most = Math.min(isKnown ? maxTokens : 1, sequence.outputsLeft - 2, this.#mostDrafts);
      for (
        let depth = 1, gain = rates[last];
        depth <= most && gain >= LEAST_RATE;
        depth++, gain *= rates[LAST_DRAFT.RIGHT]
      )
        gains.push({ sequence, depth, gain });
    }
    gains.sort((a, b) => b.gain - a.gain);
    const count = this.#bestCount(rows, gains);
    for (const { sequence } of gains.slice(0, count)) sequence.speculation!.limits[last] += 1;
  }

  /** How many of these drafts promise the most tokens a second. */
  #bestCount(rows: number, gains: readonly Gain[]): number {
    const most = Math.min(gains.length, this.#mostRows - rows);
    const drafting = new Set<Sequence>();
    let best = 0;
    let bestSpeed = (LEAST_GAIN * rows) / this.#costOf(rows);
    let tokens = rows;
    let passes = 0;
    for (let count = 1; count <= most; count++) {
      const { sequence, depth, gain } = gains[count - 1]!;
      tokens += gain;
      if (sequence.speculation!.usesModel) {
        drafting.add(sequence);
        passes = Math.max(passes, depth);
      }
      const draft = passes === 0 ? 0 : (this.#drafts.of(drafting.size) ?? UNKNOWN_DRAFT * this.#costOf(rows));
      const speed = tokens / (this.#costOf(rows + count) + passes * draft);
      if (speed <= bestSpeed) continue;
      best = count;
      bestSpeed = speed;
    }
    return best;
  }

  #costOf(rows: number): number {
    return this.#steps.of(rows) ?? 1;
  }
}
