/** Logits -> rows, as the native sampler and matchers give them: greedy, in a few lines. */
import { type Handle, ROW_STATUS, type SamplerHandle } from '../../src/engine/native/index.ts';
import { bestIds, logSoftmax } from './hash-model.ts';
import { EMPTY_ROW, type Row } from './rows.ts';

/** Options of a fake sampler, which otherwise chooses the best token. */
export type FakeSamplerOptions = {
  /** Number of candidates that it returns instead of a token. */
  readonly candidates: number;
  /** -1: no log-probabilities; k: of the token and the k best. */
  readonly topLogprobs: number;
  /** Ids that it may sample; null: all. */
  readonly allowed: readonly number[] | null;
  /** Tokens forced after a sampled one without a grammar: as many as the sampled one modulo this and one. */
  readonly forced: number;
};

/** A greedy sampler. */
export function fakeSampler(options: Partial<FakeSamplerOptions> = {}): SamplerHandle {
  const all: FakeSamplerOptions = { candidates: 0, topLogprobs: -1, allowed: null, forced: 0, ...options };
  return { ...all, accept() {} } as unknown as SamplerHandle;
}

/** The options behind a sampler that {@link fakeSampler} made. */
export function optionsOf(sampler: SamplerHandle): FakeSamplerOptions {
  return sampler as unknown as FakeSamplerOptions;
}

/** A grammar of these token sequences, each with the end token behind it. */
export class FakeMatcher {
  #left: readonly (readonly number[])[];
  readonly #end: number;

  constructor(sequences: readonly (readonly number[])[], end: number) {
    this.#left = sequences;
    this.#end = end;
  }

  /** A grammar as steps take it. */
  static handle(sequences: readonly (readonly number[])[], end: number): Handle {
    return new FakeMatcher(sequences, end) as unknown as Handle;
  }

  static of(handle: Handle | null | undefined): FakeMatcher | null {
    return (handle ?? null) as FakeMatcher | null;
  }

  get isComplete(): boolean {
    return this.#left.some((sequence) => sequence.length === 0);
  }

  get isFinal(): boolean {
    return this.#left.every((sequence) => sequence.length === 0);
  }

  allowed(): number[] {
    return [...new Set(this.#left.map(([next]) => next ?? this.#end))];
  }

  accept(token: number): void {
    this.#left = this.#left.filter(([next]) => next === token).map(([, ...rest]) => rest);
  }
}

/** The row with -Infinity in the place of each token that may not be sampled. */
export function maskRow(
  logits: Float32Array,
  sampler: SamplerHandle,
  matcher: FakeMatcher | null,
): Float32Array {
  const { allowed } = optionsOf(sampler);
  if (!allowed && !matcher) return logits;
  const held = matcher?.allowed();
  return logits.map((logit, id) =>
    (allowed?.includes(id) ?? true) && (held?.includes(id) ?? true) ? logit : -Infinity,
  );
}

/** Samples from a masked row. Log-probabilities are those of `logits`. */
export function sampleRow(
  logits: Float32Array,
  masked: Float32Array,
  sampler: SamplerHandle,
  matcher: FakeMatcher | null,
  isEdited: boolean,
): Row {
  const { candidates, topLogprobs } = optionsOf(sampler);
  if (masked.some(Number.isNaN)) return { ...EMPTY_ROW, status: ROW_STATUS.NOT_NUMBERS };
  if (candidates > 0) return { ...EMPTY_ROW, ...candidatesOf(logits, masked, candidates, topLogprobs) };
  const [token] = bestIds(masked, 1);
  if (token === undefined)
    return { ...EMPTY_ROW, status: matcher?.isComplete ? ROW_STATUS.COMPLETE : ROW_STATUS.NO_TOKEN_ALLOWED };
  matcher?.accept(token);
  const forced: number[] = [];
  while (matcher && topLogprobs < 0 && !isEdited && !matcher.isComplete && matcher.allowed().length === 1) {
    forced.push(...matcher.allowed());
    matcher.accept(forced.at(-1)!);
  }
  const scored = topLogprobs < 0 ? {} : scoreRow(logits, token, topLogprobs);
  return { ...EMPTY_ROW, ...scored, token, forced, isFinal: matcher?.isFinal ?? false };
}

/** Log-probability and rank of a token, and the k best. */
export function scoreRow(logits: Float32Array, token: number, k: number): Row {
  const logprobs = logSoftmax(logits);
  const rank = bestIds(logprobs, logprobs.length).indexOf(token) + 1;
  const top = bestIds(logprobs, k).map((id) => [id, logprobs[id]!] as const);
  return { ...EMPTY_ROW, token, logprob: logprobs[token]!, rank, top };
}

function candidatesOf(
  logits: Float32Array,
  masked: Float32Array,
  count: number,
  topLogprobs: number,
): Pick<Row, 'candidates' | 'top'> {
  const logprobs = logSoftmax(logits);
  const candidates = bestIds(masked, count).map((id) => [id, logprobs[id]!, logprobs[id]!] as const);
  return { candidates, top: scoreRow(logits, 0, Math.max(0, topLogprobs)).top };
}
