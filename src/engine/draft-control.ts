/** Durations of steps and acceptance rates of drafts -> the number of drafts that the next step should verify. */
import type { BackendLimits, StepResult } from './backend/index.ts';
import type { Plan } from './plan.ts';
import type { Sequence } from './sequence.ts';
import { LAST_DRAFT } from './speculation.ts';
import { StepCosts } from './step-costs.ts';

/** Minimum expected ratio of tokens per second with drafts to those without. */
const LEAST_GAIN = 1.05;
/** Minimum probability that a draft is accepted. */
const LEAST_RATE = 0.2;
/** Assumed cost of a model's draft as a share of a step, before it is measured. */
const UNKNOWN_DRAFT = 0.2;
/** A draft model that computes more tokens than this per draft is processing prompts. */
const DRAFT_TOKENS = 4;

const OUTCOMES = Object.values(LAST_DRAFT);

/** One more draft for a sequence, and the probability that it is accepted. */
type Gain = { readonly sequence: Sequence; readonly depth: number; readonly gain: number };

/** Draft control of one engine. */
export class DraftControl {
  readonly #mostRows: number;
  readonly #mostDrafts: number; // of a sequence, because rejected ones must be undone
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

  /** Records the duration of a plan that had only generated tokens and drafts, and the part spent on drafting. */
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

  /** Sets the limits of all sequences of a plan: the number of drafts that they verify in the following step. */
  plan({ entries }: Plan): void {
    const drafting: Sequence[] = [];
    let rows = 0;
    for (const { samples } of entries) {
      rows += samples.length;
      for (const sequence of samples) {
        const { speculation } = sequence;
        if (!speculation) continue;
        speculation.limits[0] = speculation.limits[1] = speculation.limits[2] = 0;
        const waits = speculation.usesModel && sequence.outputCount === 0; // the first token does not wait for another model
        if (!speculation.isPaused && !waits) drafting.push(sequence);
      }
    }
    if (drafting.length === 0) return;
    for (const last of OUTCOMES) this.#share(drafting, rows, last);
    let left = this.#mostRows - rows;
    for (const { speculation, outputsLeft } of drafting) {
      const { limits, limit, usesModel } = speculation!;
      if (usesModel && outputsLeft > 2 && speculation!.isDue(limit > 0)) limits.fill(1);
      // The outcome of the last draft may differ from sequence to sequence.
      for (const last of OUTCOMES) limits[last] = Math.min(limits[last], left);
      left -= Math.max(limits[0], limits[1], limits[2]);
    }
  }

  /** Sets the limits for the case that the last draft of each sequence had this outcome. */
  #share(drafting: readonly Sequence[], rows: number, last: 0 | 1 | 2): void {
    const gains: Gain[] = [];
    for (const sequence of drafting) {
      const speculation = sequence.speculation!;
      const { maxTokens, isKnown } = speculation;
      const most = Math.min(isKnown ? maxTokens : 1, sequence.outputsLeft - 2, this.#mostDrafts);
      const next = speculation.rateAfter(LAST_DRAFT.RIGHT);
      for (
        let depth = 1, gain = speculation.rateAfter(last);
        depth <= most && gain >= LEAST_RATE;
        depth++, gain *= next
      )
        gains.push({ sequence, depth, gain });
    }
    gains.sort((a, b) => b.gain - a.gain);
    const count = this.#bestCount(rows, gains);
    for (let i = 0; i < count; i++) gains[i]!.sequence.speculation!.limits[last] += 1;
  }

  /** Returns the number of these drafts with the highest expected tokens per second. */
  #bestCount(rows: number, gains: readonly Gain[]): number {
    const most = Math.min(gains.length, this.#mostRows - rows);
    const drafting = new Set<Sequence>();
    const cost = this.#costOf(rows);
    let best = 0;
    let bestSpeed = (LEAST_GAIN * rows) / cost;
    let tokens = rows;
    let passes = 0;
    for (let count = 1; count <= most; count++) {
      const { sequence, depth, gain } = gains[count - 1]!;
      tokens += gain;
      if (sequence.speculation!.usesModel) {
        drafting.add(sequence);
        passes = Math.max(passes, depth);
      }
      const draft = passes === 0 ? 0 : (this.#drafts.of(drafting.size) ?? UNKNOWN_DRAFT * cost);
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
