/** One row of logits -> one token, the slow and obvious way: what the native sampler is compared with. */
import type { SamplerPlanOptions } from '../../src/engine/native/sampler.ts';
import { uniformAt } from './philox.ts';
import { lettersOf } from './sampling.ts';

/** Result of {@link ReferenceSampler.sample}. */
export type ReferenceRow = {
  readonly token: number;
  readonly logprob: number;
  readonly rank: number;
  readonly topIds: readonly number[];
  readonly topLogprobs: readonly number[];
};

/** Softmax in float64. */
export function softmax(logits: ArrayLike<number>): number[] {
  const values = Array.from(logits);
  const best = values.reduce((a, b) => Math.max(a, b), -Infinity);
  const weights = values.map((value) => Math.exp(value - best));
  const total = weights.reduce((a, b) => a + b, 0);
  return weights.map((weight) => weight / total);
}

/** Log-softmax in float64. */
export function logSoftmax(logits: ArrayLike<number>): number[] {
  const values = Array.from(logits);
  const best = values.reduce((a, b) => Math.max(a, b), -Infinity);
  const total = values.reduce((sum, value) => sum + Math.exp(value - best), 0);
  return values.map((value) => value - best - Math.log(total));
}

/** Ids from the best value to the worst, the lowest id first among equals. */
export function bestFirst(values: ArrayLike<number>): number[] {
  return Array.from(values, (_, id) => id).sort((a, b) => values[b]! - values[a]! || a - b);
}

/** The sampling state of one sequence. */
export class ReferenceSampler {
  readonly #plan: SamplerPlanOptions;
  readonly #seed: bigint;
  readonly #output: number[] = [];
  readonly #seen = new Set<number>(); // in prompt or output

  constructor(plan: SamplerPlanOptions, seed: bigint) {
    this.#plan = plan;
    this.#seed = seed;
  }

  acceptPrompt(ids: Iterable<number>): void {
    for (const id of ids) this.#seen.add(id);
  }

  accept(id: number): void {
    this.#output.push(id);
    this.#seen.add(id);
  }

  /** Null when nothing is allowed. */
  sample(logits: Float32Array, mask?: Uint32Array): ReferenceRow | null {
    const penalised = this.#penalised(logits, mask);
    if (penalised.every((value) => value === -Infinity)) return null;
    const greedy = this.#plan.temperature === 0;
    const processed = greedy ? penalised : this.#filtered(penalised);
    const token = greedy ? bestFirst(penalised)[0]! : this.#draw(softmax(processed));
    const top = this.#plan.topLogprobs ?? -1;
    if (top < 0) return { token, logprob: 0, rank: 0, topIds: [], topLogprobs: [] };
    const logprobs = logSoftmax(this.#plan.processedLogprobs ? processed : logits);
    const topIds = bestFirst(logprobs).slice(0, top);
    const place = topIds.indexOf(token);
    const rank = place >= 0 ? place + 1 : logprobs.filter((value) => value >= logprobs[token]!).length;
    return { token, logprob: logprobs[token]!, rank, topIds, topLogprobs: topIds.map((id) => logprobs[id]!) };
  }

  /** The exact probability of every token at this step. */
  distribution(logits: Float32Array, mask?: Uint32Array): number[] {
    return softmax(this.#filtered(this.#penalised(logits, mask)));
  }

  /** Masks, bias and penalties, in float32 as the logits are. */
  #penalised(logits: Float32Array, mask?: Uint32Array): number[] {
    const plan = this.#plan;
    const row = Array.from(logits);
    const isSet = (bits: ArrayLike<number>, id: number) => ((bits[id >> 5]! >>> (id & 31)) & 1) === 1;
    for (let id = 0; id < row.length; id++) {
      if (mask && !isSet(mask, id)) row[id] = -Infinity;
      if (plan.allowed && !isSet(plan.allowed, id)) row[id] = -Infinity;
    }
    for (const word of plan.bad_words ?? []) {
      const letters = lettersOf(word);
      const prefix = letters.slice(0, -1);
      const tail = prefix.length === 0 ? [] : this.#output.slice(-prefix.length);
      if (tail.length === prefix.length && tail.every((id, i) => id === prefix[i]))
        row[letters.at(-1)!] = -Infinity;
    }
    if (this.#output.length < (plan.min_tokens ?? 0))
      for (const id of plan.stopIds ?? []) row[id] = -Infinity;
    for (const [i, id] of (plan.logitBiasIds ?? new Int32Array()).entries())
      row[id] = Math.fround(row[id]! + plan.logitBiasValues![i]!);

    const repetition = Math.fround(plan.repetition_penalty ?? 1);
    for (const id of this.#seen)
      row[id] = Math.fround(row[id]! > 0 ? row[id]! / repetition : row[id]! * repetition);
    const counts = new Map<number, number>();
    for (const id of this.#output) counts.set(id, (counts.get(id) ?? 0) + 1);
    for (const [id, count] of counts) {
      row[id] = Math.fround(row[id]! - Math.fround(Math.fround(plan.frequency_penalty ?? 0) * count));
      row[id] = Math.fround(row[id]! - Math.fround(plan.presence_penalty ?? 0));
    }
    return row;
  }

  /** Temperature, min_p, top_k, top_p: dropped tokens become -Infinity. */
  #filtered(penalised: readonly number[]): number[] {
    const plan = this.#plan;
    let row = penalised.map((value) => value / Math.fround(plan.temperature ?? 1));

    const probabilities = softmax(row);
    const best = probabilities.reduce((a, b) => Math.max(a, b), 0);
    const least = Math.fround(plan.min_p ?? 0) * best;
    row = row.map((value, id) => (probabilities[id]! < least ? -Infinity : value));

    const k = plan.top_k ?? 0;
    if (k > 0 && k < row.length) {
      const kth = row[bestFirst(row)[k - 1]!]!;
      row = row.map((value) => (value < kth ? -Infinity : value));
    }

    const top_p = Math.fround(plan.top_p ?? 1);
    if (top_p < 1) {
      const share = softmax(row);
      const worstFirst = bestFirst(row).reverse();
      let cumulative = 0;
      for (const id of worstFirst.slice(0, -1)) {
        cumulative += share[id]!;
        if (cumulative <= 1 - top_p) row[id] = -Infinity;
      }
    }
    return row;
  }

  #draw(probabilities: readonly number[]): number {
    const u = uniformAt(this.#seed, this.#output.length);
    let cumulative = 0;
    for (let id = 0; id < probabilities.length; id++) {
      cumulative += probabilities[id]!;
      if (cumulative > u) return id;
    }
    return probabilities.findLastIndex((probability) => probability > 0);
  }
}
