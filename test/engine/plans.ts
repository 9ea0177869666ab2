/** Short ways to write sequences, and to read plans and cache edits, in rows of tests. */
import { MEMORY_COPY } from '../../src/engine/backend/index.ts';
import type { Plan } from '../../src/engine/plan.ts';
import type { SchedulerLimits, SchedulerOptions } from '../../src/engine/scheduler.ts';
import { type Group, Sequence, type SequenceExtras } from '../../src/engine/sequence.ts';
import { fakeSampler } from '../fakes/fake-sampler.ts';

export const LIMITS: SchedulerLimits = {
  slotCount: 4,
  kvTokens: 64,
  batchTokens: 8,
  outputRows: 8,
  rowTile: 1,
  rollbackTokens: Infinity,
  windowTokens: 0,
  savedWindow: 0,
  isKvUnified: true,
};

export const POLICY: SchedulerOptions = { maxRunning: 4, scheduling: 'fcfs', prefixCache: true };

/** A request of a row: its prompt, and what differs from the defaults. */
export type Given = Partial<Omit<Group, 'prompt'>> & {
  readonly prompt: readonly number[];
  /** Choices; default 1. */
  readonly n?: number;
  readonly extras?: SequenceExtras;
};

/** A prompt of `count` tokens that no other first token begins. */
export function prompt(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => (i === 0 ? first : i));
}

/** The sequences of requests, in their order of arrival. */
export function sequencesOf(requests: readonly Given[]): Sequence[] {
  return requests.flatMap(({ prompt, n = 1, extras, ...group }, arrival) => {
    const shared = {
      cacheKey: '',
      adapter: 0,
      priority: 0,
      arrival,
      ...group,
      prompt: Int32Array.from(prompt),
    };
    return Array.from({ length: n }, (_, index) => new Sequence(shared, index, fakeSampler(), extras));
  });
}

/** Sequences by a letter each, in their order. */
export class Names {
  readonly #letters = new Map<Sequence, string>();

  constructor(sequences: readonly Sequence[]) {
    for (const [i, sequence] of sequences.entries()) this.#letters.set(sequence, 'abcdefgh'[i]!);
  }

  of(sequence: Sequence): string {
    return this.#letters.get(sequence)!;
  }

  /** `a 0+4 -> ab, c 4+1 -> c`: sequence, start and count of each entry, and who samples from it. */
  show(plan: Plan | null): string {
    if (!plan) return 'nothing';
    const entries = plan.entries.map(({ sequence, start, count, samples }) => {
      const sampled = samples.map((one) => this.of(one)).join('');
      return `${this.of(sequence)} ${start}+${count}${sampled && ` -> ${sampled}`}`;
    });
    return entries.join(', ');
  }
}

/** `copy 0 to 1 until 4, cut 2 at 3, free 0`. */
export function showEdits(edits: ArrayLike<number>): string {
  const shown: string[] = [];
  for (let i = 0; i < edits.length; i += 5) {
    const [kind, slot, target, from, to] = Array.from(edits).slice(i, i + 5);
    if (kind === MEMORY_COPY) shown.push(`copy ${slot} to ${target} until ${to}`);
    else shown.push(from! < 0 ? `free ${slot}` : `cut ${slot} at ${from}`);
  }
  return shown.join(', ');
}
