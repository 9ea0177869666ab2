/** The samplers of llama.cpp as their papers and pages define them, in float64: what the native ones are compared with. */
import type { SamplerPlanOptions } from '../../src/engine/native/sampler.ts';
import { bestFirst, softmax } from './reference-sampler.ts';

const f32 = Math.fround;

/**
 * top-n-sigma, top_k, typical_p, top_p, min_p, XTC, the temperature and adaptive-p, one after the other; -Infinity: dropped. `xtc`: its random
 * number. `target`: what adaptive-p prefers now.
 */
export function llamaDistribution(
  plan: SamplerPlanOptions,
  logits: readonly number[],
  xtc: number,
  target = f32(plan.adaptive_target ?? -1),
): number[] {
  let row = [...logits];
  const keep = (isKept: (id: number) => boolean): void => {
    row = row.map((value, id) => (isKept(id) ? value : -Infinity));
  };
  if ((plan.top_n_sigma ?? -1) > 0) {
    const known = row.filter((value) => value > -Infinity);
    const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
    const variance = known.reduce((sum, value) => sum + (value - mean) ** 2, 0) / known.length;
    const least = Math.max(...known) - f32(plan.top_n_sigma!) * Math.sqrt(variance);
    keep((id) => row[id]! >= least);
  }
  const k = plan.top_k ?? 0;
  if (k > 0 && k < row.length) {
    const least = row[bestFirst(row)[k - 1]!]!;
    keep((id) => row[id]! >= least);
  }
  if ((plan.typical_p ?? 1) < 1) keep(typicalSet(softmax(row), f32(plan.typical_p!)));
  if ((plan.top_p ?? 1) < 1) keep(nucleus(softmax(row), f32(plan.top_p!)));
  if ((plan.min_p ?? 0) > 0) {
    const p = softmax(row);
    const least = Math.max(...p) * f32(plan.min_p!);
    keep((id) => p[id]! >= least);
  }
  if ((plan.xtc_probability ?? 0) > 0 && xtc <= f32(plan.xtc_probability!)) {
    const p = softmax(row);
    const top = bestFirst(row).filter((id) => p[id]! >= f32(plan.xtc_threshold ?? 0.1));
    for (const id of top.slice(0, -1)) row[id] = -Infinity;
  }
  const temperature = dynamicTemperature(plan, softmax(row));
  const p = softmax(row.map((value) => value / temperature));
  if (target < 0) return p;
  return softmax(
    p.map((one, id) => {
      const distance = Math.abs(one - target) / 0.3;
      return row[id] === -Infinity ? -Infinity : 5 - (10 * distance ** 2) / (1 + distance);
    }),
  );
}

function entropyOf(p: readonly number[]): number {
  return p.reduce((sum, one) => (one > 0 ? sum - one * Math.log(one) : sum), 0);
}

function typicalSet(p: readonly number[], mass: number): (id: number) => boolean {
  const entropy = entropyOf(p);
  const distance = p.map((one) => -Math.abs(-Math.log(one) - entropy));
  const kept = new Set<number>();
  let sum = 0;
  for (const id of bestFirst(distance)) {
    kept.add(id);
    sum += p[id]!;
    if (sum > mass) break;
  }
  return (id) => kept.has(id);
}

function nucleus(p: readonly number[], mass: number): (id: number) => boolean {
  const kept = new Set<number>();
  let sum = 0;
  for (const id of bestFirst(p)) {
    kept.add(id);
    sum += p[id]!;
    if (sum >= mass) break;
  }
  return (id) => kept.has(id);
}

function dynamicTemperature(plan: SamplerPlanOptions, p: readonly number[]): number {
  const temperature = f32(plan.temperature ?? 1);
  const range = f32(plan.dynatemp_range ?? 0);
  const count = p.filter((one) => one > 0).length;
  if (range <= 0 || count < 2) return temperature;
  const least = Math.max(0, temperature - range);
  const share = entropyOf(p) / Math.log(count);
  return least + (temperature + range - least) * share ** (plan.dynatemp_exponent ?? 1);
}

/** The mean of the drawn probabilities, and the target that corrects it: https://github.com/ggml-org/llama.cpp/pull/17927. */
export class ReferenceAdaptive {
  readonly #plan: SamplerPlanOptions;
  readonly #drawn: number[] = [];

  constructor(plan: SamplerPlanOptions) {
    this.#plan = plan;
  }

  /** As if the target had been drawn for ever before. */
  get target(): number {
    const wanted = f32(this.#plan.adaptive_target!);
    const decay = f32(this.#plan.adaptive_decay ?? 0.9);
    const { length } = this.#drawn;
    const past = decay ** length / (1 - decay);
    const sum = this.#drawn.reduce((total, p, at) => total + p * decay ** (length - 1 - at), wanted * past);
    const weight = this.#drawn.reduce((total, _, at) => total + decay ** at, past);
    return Math.min(1, Math.max(0, 2 * wanted - sum / weight));
  }

  accept(probability: number): void {
    this.#drawn.push(probability);
  }
}

/** Algorithms 1 and 2 of https://arxiv.org/abs/2007.14966. */
export class ReferenceMirostat {
  readonly #plan: SamplerPlanOptions;
  #bound: number;

  constructor(plan: SamplerPlanOptions) {
    this.#plan = plan;
    this.#bound = 2 * f32(plan.mirostat_tau ?? 5);
  }

  distribution(logits: readonly number[]): number[] {
    const row = logits.map((value) => value / f32(this.#plan.temperature ?? 1));
    const p = softmax(row);
    const order = bestFirst(row);
    const count =
      this.#plan.mirostat === 1
        ? this.#zipfCount(order.map((id) => p[id]!))
        : Math.max(1, order.filter((id) => -Math.log2(p[id]!) <= this.#bound).length);
    const kept = new Set(order.slice(0, count));
    return softmax(row.map((value, id) => (kept.has(id) ? value : -Infinity)));
  }

  accept(surprise: number): void {
    this.#bound -= f32(this.#plan.mirostat_eta ?? 0.1) * (surprise - f32(this.#plan.mirostat_tau ?? 5));
  }

  /** `p`: best first. */
  #zipfCount(p: readonly number[]): number {
    let above = 0;
    let below = 0;
    for (let i = 0; i < Math.min(99, p.length - 1); i++) {
      const t = Math.log((i + 2) / (i + 1));
      above += t * Math.log(p[i]! / p[i + 1]!);
      below += t * t;
    }
    const s = above / below;
    const epsilon = s - 1;
    const k = ((epsilon * 2 ** this.#bound) / (1 - p.length ** -epsilon)) ** (1 / s);
    return Math.min(p.length, Math.max(1, Math.floor(k)));
  }
}

/** DRY over tokens that are letters: every earlier place is compared with the end, one token after the other. */
export class ReferenceDry {
  readonly #plan: Omit<SamplerPlanOptions, 'vocabSize'>;
  readonly #tokens: readonly number[];

  constructor(plan: Omit<SamplerPlanOptions, 'vocabSize'>, tokens: readonly number[]) {
    this.#plan = plan;
    this.#tokens = tokens;
  }

  penalised(logits: ArrayLike<number>): number[] {
    const {
      dry_multiplier = 0,
      dry_base = 1.75,
      dry_allowed_length: allowed = 2,
      repetition_penalty = 1,
    } = this.#plan;
    const row = Array.from(logits);
    for (const id of new Set(this.#tokens))
      row[id] = row[id]! > 0 ? row[id]! / f32(repetition_penalty) : row[id]! * f32(repetition_penalty);
    for (const [id, length] of this.#repetitions())
      if (length >= allowed) row[id]! -= f32(dry_multiplier) * f32(dry_base) ** (length - allowed);
    return row;
  }

  /** By token: the longest end of the sequence that stands before it somewhere. */
  #repetitions(): Map<number, number> {
    const { dry_penalty_last_n = -1, dry_allowed_length: allowed = 2 } = this.#plan;
    const window = dry_penalty_last_n < 0 ? this.#tokens : this.#tokens.slice(-dry_penalty_last_n);
    const found = new Map<number, number>();
    const most = Math.min(window.length, this.#sinceBreaker());
    if (window.length <= allowed || most < allowed) return found;
    for (let at = 1; at < window.length; at++) {
      let length = 0;
      while (length < at && window[at - 1 - length] === window[window.length - 1 - length]) length += 1;
      length = Math.min(length, most);
      found.set(window[at]!, Math.max(found.get(window[at]!) ?? 0, length));
    }
    return found;
  }

  #sinceBreaker(): number {
    const text = String.fromCodePoint(...this.#tokens.map((id) => 0x4e00 + id));
    const ends = (this.#plan.dry_sequence_breakers ?? []).map((breaker) => {
      const at = text.lastIndexOf(breaker);
      return at < 0 ? 0 : at + breaker.length;
    });
    return text.length - Math.max(0, ...ends);
  }
}
