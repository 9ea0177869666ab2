/**
 * Token sequences -> one vector each, by runs of an encoder, or of a decoder without a past. Runs on the thread that computes embeddings.
 */
import type { InferenceSession, Tensor } from 'onnxruntime-node';
import type { OnpolicyError } from '../errors.ts';
import type { VectorPooling } from '../models/index.ts';
import { copyFromHalf } from './half.ts';
import type { DecoderSizes, SessionSettings } from './messages.ts';
import { unsupported } from './model-errors.ts';
import { loadRuntime } from './packages.ts';
import { serve } from './serve.ts';
import { openSession } from './session.ts';

/** Outputs that hold the states of all tokens. */
const STATES = ['last_hidden_state', 'token_embeddings'];
const TOKEN_INPUTS = new Set(['input_ids', 'attention_mask', 'token_type_ids', 'position_ids']);
const PAST = /^past_key_values\.\d+\.(key|value)$/;
/** Shortest sequence of a run as a share of its longest one: the rest of each row is padding. */
const LEAST_FILL = 0.75;

/** The graph to open, and sizes that it does not state. */
export type EmbeddingFiles = {
  readonly file: string;
  readonly sizes: DecoderSizes;
  readonly pooling: VectorPooling;
  /** Size of a state. */
  readonly width: number;
};

type Opened = EmbeddingFiles & {
  readonly session: InferenceSession;
  readonly TensorClass: typeof Tensor;
  readonly output: string;
};

let opened: Opened;

/** Opens the graph. Returns the size of a vector. Fails with `UNSUPPORTED` for a graph with other inputs. */
async function open(files: EmbeddingFiles, settings: SessionSettings): Promise<number> {
  const session = await openSession(files.file, settings);
  const unknown = session.inputNames.find((name) => !TOKEN_INPUTS.has(name) && !PAST.test(name));
  if (unknown) throw refused(`its input ${unknown} is not one of a model of text`);
  const states = session.outputMetadata.find(({ name }) => STATES.includes(name));
  if (!states?.isTensor)
    throw refused(`it gives ${session.outputNames.join(', ')}, and none of ${STATES.join(', ')}`);
  const last = states.shape.at(-1);
  const width = typeof last === 'number' && last > 0 ? last : files.width;
  const { Tensor: TensorClass } = await loadRuntime();
  opened = { ...files, width, session, TensorClass, output: states.name };
  return width;
}

/**
 * Computes the vectors of sequences, which are concatenated in `tokens`.
 * @returns (sequences, width)
 */
async function embed(tokens: Int32Array, lengths: Int32Array): Promise<Float32Array> {
  const { width } = opened;
  const starts = new Int32Array(lengths.length);
  for (let i = 1; i < lengths.length; i++) starts[i] = starts[i - 1]! + lengths[i - 1]!;
  const rows = new Float32Array(lengths.length * width);
  for (const run of toRuns(lengths)) {
    const sequences = run.map((i) => tokens.subarray(starts[i], starts[i]! + lengths[i]!));
    const states = await statesOf(sequences);
    const longest = sequences[0]!.length;
    for (const [row, i] of run.entries()) {
      const own = states.subarray(row * longest * width, (row * longest + lengths[i]!) * width);
      pool(own, lengths[i]!, rows.subarray(i * width, (i + 1) * width));
    }
  }
  return rows;
}

/** Returns the states (rows, longest, width) of sequences, the longest one first. */
async function statesOf(sequences: readonly Int32Array[]): Promise<Float32Array> {
  const { session, TensorClass, output } = opened;
  const dims = [sequences.length, sequences[0]!.length] as const;
  const fill = (number: (id: number, at: number) => number): BigInt64Array => {
    const numbers = new BigInt64Array(dims[0] * dims[1]);
    for (const [row, sequence] of sequences.entries())
      for (const [at, id] of sequence.entries()) numbers[row * dims[1] + at] = BigInt(number(id, at));
    return numbers;
  };
  const numbers: Record<string, BigInt64Array> = {
    input_ids: fill((id) => id),
    attention_mask: fill(() => 1),
    token_type_ids: fill(() => 0),
    position_ids: fill((_, at) => at),
  };
  const feeds: Record<string, Tensor> = {};
  for (const input of session.inputMetadata) {
    const given = numbers[input.name];
    if (given) feeds[input.name] = new TensorClass('int64', given, dims);
    else if (input.isTensor) feeds[input.name] = noPast(input, dims[0]);
  }
  const { [output]: states } = await session.run(feeds, [output]);
  if (states!.type === 'float32') return states!.data as Float32Array;
  if (states!.type !== 'float16') throw refused(`${output} is of type ${states!.type}`);
  const bits = states!.data as unknown as Uint16Array;
  const wide = new Float32Array(bits.length);
  copyFromHalf(new Uint16Array(bits.buffer, bits.byteOffset, bits.length), wide);
  return wide;
}

function noPast({ shape, type }: InferenceSession.TensorValueMetadata, rows: number): Tensor {
  const { sizes, TensorClass } = opened;
  const sizeOf = (size: number | string | undefined, fallback: number): number =>
    typeof size === 'number' ? size : fallback;
  const dims = [rows, sizeOf(shape[1], sizes.heads), 0, sizeOf(shape[3], sizes.headSize)];
  return type === 'float16'
    ? new TensorClass('float16', new Uint16Array(0), dims)
    : new TensorClass('float32', new Float32Array(0), dims);
}

function pool(states: Float32Array, length: number, row: Float32Array): void {
  const { width, pooling } = opened;
  if (pooling !== 'mean') {
    const token = pooling === 'cls' ? 0 : length - 1;
    return row.set(states.subarray(token * width, (token + 1) * width));
  }
  for (let token = 0; token < length; token++)
    for (let i = 0; i < width; i++) row[i]! += states[token * width + i]! / length;
}

/** Returns the indexes of sequences that run together, the longest one first. */
function toRuns(lengths: Int32Array): number[][] {
  const runs: number[][] = [];
  for (const i of [...lengths.keys()].sort((a, b) => lengths[b]! - lengths[a]!)) {
    const run = runs.at(-1);
    if (run && lengths[i]! >= LEAST_FILL * lengths[run[0]!]!) run.push(i);
    else runs.push([i]);
  }
  return runs;
}

function refused(reason: string): OnpolicyError {
  return unsupported(`this ONNX graph makes no embeddings here: ${reason}`);
}

const methods = {
  open,
  embed,
  async close(): Promise<void> {
    await opened?.session.release();
  },
};

/** Methods of the thread of an embedding model. */
export type EmbeddingMethods = typeof methods;

serve(methods);
