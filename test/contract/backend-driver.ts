/** Feeds of tokens with samples -> steps of a backend under test, and their rows. */
import { expect } from 'vitest';
import {
  type Backend,
  MEMORY_REMOVE,
  NO_ADAPTER,
  type RowEdit,
  type Step,
} from '../../src/engine/backend/index.ts';
import type { Handle, SamplerHandle } from '../../src/engine/native/index.ts';
import { type Row, toRows } from '../fakes/rows.ts';

/** Limits of the backends under test. */
export const CONTRACT_LIMITS = {
  kvTokens: 4 * 256,
  batchTokens: 64,
  slotCount: 4,
  maxOutputs: 16,
  threads: 1,
};

/** A greedy sampler. */
export type SamplerOptions = {
  /** -1: no log-probabilities; k: of the token and the k best. */
  readonly topLogprobs?: number;
  /** Number of candidates that it returns instead of a token. */
  readonly candidates?: number;
  /** Ids that it may sample. */
  readonly allowed?: readonly number[];
};

/** A backend opened for the contract, with {@link CONTRACT_LIMITS}. */
export type Opened = {
  readonly backend: Backend;
  readonly sampler: (options?: SamplerOptions) => SamplerHandle;
  /** A grammar that allows these texts. */
  readonly matcher: (texts: readonly string[]) => Promise<Handle>;
  readonly textOf: (ids: readonly number[]) => string;
  /** Equal digits of equal log-probabilities: company and chunks change the last bits. */
  readonly digits: number;
  /** True if the grammar engine knows how the model's tokenizer splits a text. Otherwise no tokens are forced. */
  readonly forcesTokens: boolean;
  /** An adapter of the model, or null if adapters are not supported. */
  readonly adapter: string | null;
  readonly close: () => Promise<void>;
};

/** A sample after the last token of a feed. */
export type Sampled = {
  readonly sampler?: SamplerHandle;
  readonly matcher?: Handle | null;
  /** Edits the masked row. */
  readonly edit?: (row: Float32Array) => boolean;
};

/** Tokens of one slot in a step. */
export type Feed = {
  readonly slot: number;
  readonly from: number;
  readonly tokens: readonly number[];
  readonly samples?: readonly Sampled[];
};

/** The edits that free a slot. */
export function free(slot: number): number[] {
  return [MEMORY_REMOVE, slot, 0, -1, -1];
}

/** Short ways to run steps. */
export function drive(opened: () => Opened) {
  function toStep(feeds: readonly Feed[], edits: readonly number[], more: Partial<Step>): Step {
    const samples = feeds.flatMap((feed, i) =>
      (feed.samples ?? []).map((sample) => ({ ...sample, feed: i })),
    );
    const ends = feeds.map((_, i) =>
      feeds.slice(0, i + 1).reduce((sum, { tokens }) => sum + tokens.length, 0),
    );
    const matchers = samples.map(({ matcher }) => matcher ?? null);
    return {
      adapter: NO_ADAPTER,
      memoryEdits: Int32Array.from(edits),
      tokens: Int32Array.from(feeds.flatMap(({ tokens }) => tokens)),
      positions: Int32Array.from(feeds.flatMap(({ tokens, from }) => tokens.map((_, i) => from + i))),
      sequences: Int32Array.from(feeds.flatMap(({ tokens, slot }) => tokens.map(() => slot))),
      sampleRows: Int32Array.from(samples, ({ feed }) => ends[feed]! - 1),
      samplers: samples.map(({ sampler }) => sampler ?? opened().sampler()),
      ...(matchers.some((matcher) => matcher) ? { matchers } : {}),
      rowEdits: samples.flatMap(({ edit }, sample) => (edit ? [rowEdit(sample, edit)] : [])),
      scoreRows: new Int32Array(0),
      mayRunAhead: false,
      ...more,
    };
  }

  function rowEdit(sample: number, edit: (row: Float32Array) => boolean): RowEdit {
    const row = new Float32Array(opened().backend.vocabSize);
    return { sample, row: () => row, edit: () => edit(row) };
  }

  async function step(
    feeds: readonly Feed[],
    edits: readonly number[] = [],
    more: Partial<Step> = {},
  ): Promise<Row[]> {
    return toRows((await opened().backend.step(toStep(feeds, edits, more))).samples);
  }

  const sampled = (options?: SamplerOptions): Sampled => ({ sampler: opened().sampler(options) });
  /** The row after these tokens in an empty slot, with the two best tokens. */
  const rowAfter = async (tokens: readonly number[]): Promise<Row> =>
    (await step([{ slot: 2, from: 0, tokens, samples: [sampled({ topLogprobs: 2 })] }], free(2)))[0]!;

  function expectSame(row: Row, expected: Row): void {
    const near = (logprob: number): unknown => expect.closeTo(logprob, opened().digits);
    const top = expected.top.map(([id, logprob]) => [id, near(logprob)]);
    expect(row).toEqual({ ...expected, logprob: near(expected.logprob), top });
  }

  return { toStep, step, sampled, rowAfter, expectSame };
}
