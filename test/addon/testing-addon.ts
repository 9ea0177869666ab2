/** The addon of the tests: all that both addons export, compiled once for them and for it, and functions of their parts. */
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type {
  Addon,
  Handle,
  Kernels,
  SamplerHandle,
  SamplerPlanHandle,
} from '../../src/engine/native/index.ts';

export const TESTING_FILE = fileURLToPath(
  new URL('../../native/build/Release/testing.node', import.meta.url),
);

type Mask = Uint32Array | Int32Array | null;

/** How long cores were looked at, how many of them were idle, and how many computed for the process. */
export type CoreLook = { seconds: number; idle: number; own: number };

/** The result of sampling one row. */
export type SampledRow = {
  readonly status: number; // see ROW_STATUS
  readonly token: number; // -1 unless sampled
  readonly logprob: number; // natural logarithm; -Infinity is possible
  /** Surprise of the token among the remaining ones, in bits. 0 without mirostat. */
  readonly surprise: number;
  /** Place among `topIds`, else the number of tokens that are at least as likely; 0: not asked for. */
  readonly rank: number;
  readonly topIds: Int32Array; // (k) best first, lowest id first among equals
  readonly topLogprobs: Float32Array; // (k)
};

/** `kernels`: one of `samplerKernels()`; default the fastest. */
export type TestedSampler = SamplerHandle & {
  /** Raw logits -> a token, not yet accepted. `mask`: a bit per token, 1: allowed by the grammar. */
  sample(logits: Float32Array, mask?: Mask, kernels?: string): SampledRow;
  /** First half of `sample`, up to a JavaScript hook: the row with masks (-Infinity) and bias. */
  prepare(logits: Float32Array, mask?: Mask): Float32Array;
  /** Second half, on the edited row. Log-probabilities come from the raw logits. */
  sampleEdited(logits: Float32Array, row: Float32Array): SampledRow;
  /** The tokens of the next `count` places in the random stream, none accepted; -1 where sampling fails. */
  drawMany(logits: Float32Array, count: number, mask?: Mask): Int32Array;
};

type TestingAddon = Omit<Addon, 'Sampler'> & {
  readonly Sampler: (new (
    sampler: SamplerHandle,
  ) => TestedSampler) &
    (new (
      plan: SamplerPlanHandle,
      seed: bigint,
    ) => TestedSampler);
  /**
   * Use of the cores between looks at them -> (looks, users) threads that a budget then gives to computations that run at the same time,
   * each with a maximum. `during` is the use of the cores while these run.
   */
  threadBudget(
    cores: number,
    looks: readonly (CoreLook & { during?: CoreLook })[],
    users: readonly number[],
  ): number[][];
  /** Seconds of a clock, of idle cores together, of the process on all of them. `statistics`: in place of Linux's file. */
  coreTimes(statistics?: string): { now: number; idle: number; own: number } | null;
  /** Log-softmax, rank and the k best of one row for a given token. */
  scoreRow(logits: Float32Array, token: number, k: number): SampledRow;
  /** Masks may take this part of their work from now on. */
  divideWork(divisor: number): void;
  /** Work of a matcher's constraint so far, its compilation included. */
  workOf(matcher: Handle): number;
  /** Returns the tokens of a text by the engine's tokenizer, or null if it cannot encode the text. */
  splitText(tokenizer: Handle, text: string): Int32Array | null;
  /** The kernel variants that this processor runs, the fastest last. All give the same tokens. */
  samplerKernels(): string[];
  /** Matmul kernels for packed weights that this processor has, the fastest first. */
  matmulKernels(): Exclude<Kernels, 'plain'>[];
  /** One matmul, to check and to time kernels. */
  packedMatmul(options: {
    kernels: string; // of matmulKernels
    type: number; // of ggml
    width: number;
    rows: number;
    weights: Uint8Array; // (rows, width) as ggml has them
    x: Float32Array; // (tokens, width)
    threads: number;
    rounds: number;
  }): Promise<{
    y: Float32Array; // (tokens, rows)
    weights: Uint8Array; // packed and unpacked
    seconds: Float32Array; // (rounds)
  }>;
  /** Matmuls of each token with its experts: (tokens, used, rows). */
  packedExperts(options: {
    kernels: string; // of matmulKernels
    type: number; // of ggml
    width: number;
    rows: number; // of an expert
    weights: Uint8Array; // (experts, rows, width) as ggml has them
    ids: Int32Array; // (tokens, used) experts
    used: number;
    x: Float32Array; // (tokens, 1 or used, width)
    threads: number;
  }): Promise<Float32Array>;
  /** Kernels for attention and adapters that this processor has, the fastest first. */
  attentionKernels(): string[];
  /** Attention over cells in the order of positions, to check kernels. Token i sees the cells up to `firstToken` + i. */
  attend(options: {
    kernels: string; // of attentionKernels
    type: 0 | 1 | 2; // of cells: F16, Q8_0, F32
    width: number;
    heads: number;
    kvHeads: number;
    firstToken: number;
    window: number; // cells that a token sees; 0: all
    sees: Uint8Array; // (tokens, cells) 1: the token sees the cell; or empty: as firstToken and window say
    positions: Int32Array; // (cells) of a cache that sequences share, or empty
    cap: number; // of scores; 0: none
    sinks: Float32Array; // (heads) or empty
    q: Float32Array; // (tokens, heads, width)
    k: Uint8Array; // (cells, kv heads, width)
    v: Uint8Array; // (cells, kv heads, width)
    threads: number; // among which tasks are planned
  }): Float32Array; // (tokens, heads, width)
  /** Matmuls with both factors of an adapter, to check kernels. */
  lowRank(options: {
    kernels: string; // of attentionKernels
    in: number;
    rank: number;
    out: number;
    a: Float32Array; // (rank, in)
    b: Float32Array; // (rank, out)
    x: Float32Array; // (tokens, in)
  }): Float32Array; // (tokens, out)
  /** The gated delta rule for one head and up to 32 tokens, to check kernels. */
  deltaNet(options: {
    kernels: string; // of attentionKernels
    size: number; // 16, 32, 64 or 128
    q: Float32Array; // (tokens, size)
    k: Float32Array; // (tokens, size)
    v: Float32Array; // (tokens, size)
    gates: Float32Array; // (tokens, 1 or size)
    beta: Float32Array; // (tokens)
    state: Float32Array; // (size, size)
  }): Float32Array; // (tokens, size), then the state
  /** Short convolutions of up to 16 channels, to check kernels. */
  convolve(options: {
    kernels: string; // of attentionKernels
    channels: number;
    taps: number;
    x: Float32Array; // (channels, tokens + taps - 1)
    weights: Float32Array; // (channels, taps)
  }): Float32Array; // (tokens, channels)
};

/** Its engine is not open: it has its own copy of what that sets. */
export const testing = createRequire(import.meta.url)(TESTING_FILE) as TestingAddon;
