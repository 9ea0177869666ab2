/** Token sequences -> one vector each: runs of an encoder's graph, or of a decoder's without a past. On the thread that computes. */
import type { InferenceSession, Tensor } from 'onnxruntime-node';
import { errorAt, type OnpolicyError } from '../../errors.ts';
import { copyFromHalf } from './half.ts';
import type { DecoderSizes, OnnxPooling } from './messages.ts';

/** Outputs that hold the states of all tokens. */
const STATES = ['last_hidden_state', 'token_embeddings'];
const TOKEN_INPUTS = new Set(['input_ids', 'attention_mask', 'token_type_ids', 'position_ids']);
const PAST = /^past_key_values\.\d+\.(key|value)$/;
/** A run has sequences of this share of its longest one at least: the rest of each row is padding. */
const LEAST_FILL = 0.75;

/** Computes vectors on one graph. */
export class GraphEmbedder {
  /** Numbers of a vector. */
  readonly size: number;
  readonly #session: InferenceSession;
  readonly #Tensor: typeof Tensor;
  readonly #pooling: OnnxPooling;
  readonly #sizes: DecoderSizes;
  readonly #output: string;

  /** Fails with `UNSUPPORTED` for a graph that is fed in another way. */
  constructor(
    session: InferenceSession,
    tensorClass: typeof Tensor,
    { pooling, sizes, width }: { pooling: OnnxPooling; sizes: DecoderSizes; width: number },
  ) {
    const { inputMetadata: inputs, outputMetadata: outputs } = session;
    const unknown = inputs.find(({ name }) => !TOKEN_INPUTS.has(name) && !PAST.test(name));
    if (unknown) throw unsupported(`its input ${unknown.name} is not one of a model of text`);
    const states = outputs.find(({ name }) => STATES.includes(name));
    if (!states?.isTensor)
      throw unsupported(`it gives ${session.outputNames.join(', ')}, and none of ${STATES.join(', ')}`);
    const last = states.shape.at(-1);
    this.size = typeof last === 'number' && last > 0 ? last : width;
    this.#session = session;
    this.#Tensor = tensorClass;
    this.#pooling = pooling;
    this.#sizes = sizes;
    this.#output = states.name;
  }

  /**
   * The vectors of some sequences, end to end in `tokens`.
   * @returns (sequences, size)
   */
  async embed(tokens: Int32Array, lengths: Int32Array): Promise<Float32Array> {
    const starts = new Int32Array(lengths.length);
    for (let i = 1; i < lengths.length; i++) starts[i] = starts[i - 1]! + lengths[i - 1]!;
    const rows = new Float32Array(lengths.length * this.size);
    for (const run of toRuns(lengths)) {
      const sequences = run.map((i) => tokens.subarray(starts[i], starts[i]! + lengths[i]!));
      const states = await this.#states(sequences);
      const width = sequences[0]!.length;
      for (const [row, i] of run.entries()) {
        const own = states.subarray(row * width * this.size, (row * width + lengths[i]!) * this.size);
        this.#pool(own, lengths[i]!, rows.subarray(i * this.size, (i + 1) * this.size));
      }
    }
    return rows;
  }

  /** (rows, longest, size) of sequences, the longest one first. */
  async #states(sequences: readonly Int32Array[]): Promise<Float32Array> {
    const [rows, width] = [sequences.length, sequences[0]!.length];
    const ids = new BigInt64Array(rows * width);
    const mask = new BigInt64Array(rows * width);
    const positions = new BigInt64Array(rows * width);
    for (const [row, sequence] of sequences.entries())
      for (const [i, id] of sequence.entries()) {
        ids[row * width + i] = BigInt(id);
        mask[row * width + i] = 1n;
        positions[row * width + i] = BigInt(i);
      }
    const numbers: Record<string, BigInt64Array> = {
      input_ids: ids,
      attention_mask: mask,
      token_type_ids: new BigInt64Array(rows * width),
      position_ids: positions,
    };
    const feeds: Record<string, Tensor> = {};
    for (const input of this.#session.inputMetadata) {
      const given = numbers[input.name];
      if (given) feeds[input.name] = new this.#Tensor('int64', given, [rows, width]);
      else if (input.isTensor) feeds[input.name] = this.#noPast(input, rows);
    }
    const { [this.#output]: states } = await this.#session.run(feeds, [this.#output]);
    if (states!.type === 'float32') return states!.data as Float32Array;
    if (states!.type !== 'float16') throw unsupported(`${this.#output} is of type ${states!.type}`);
    const bits = states!.data as unknown as Uint16Array;
    const wide = new Float32Array(bits.length);
    copyFromHalf(new Uint16Array(bits.buffer, bits.byteOffset, bits.length), wide);
    return wide;
  }

  #noPast(input: InferenceSession.TensorValueMetadata, rows: number): Tensor {
    const sizeOf = (axis: number, fallback: number): number => {
      const size = input.shape[axis];
      return typeof size === 'number' ? size : fallback;
    };
    const dims = [rows, sizeOf(1, this.#sizes.heads), 0, sizeOf(3, this.#sizes.headSize)];
    return input.type === 'float16'
      ? new this.#Tensor('float16', new Uint16Array(0), dims)
      : new this.#Tensor('float32', new Float32Array(0), dims);
  }

  #pool(states: Float32Array, length: number, row: Float32Array): void {
    const { size } = this;
    if (this.#pooling !== 'mean') {
      const token = this.#pooling === 'cls' ? 0 : length - 1;
      return row.set(states.subarray(token * size, (token + 1) * size));
    }
    for (let token = 0; token < length; token++)
      for (let i = 0; i < size; i++) row[i]! += states[token * size + i]! / length;
  }
}

/** Indexes of sequences that run together, the longest one first. */
function toRuns(lengths: Int32Array): number[][] {
  const runs: number[][] = [];
  for (const i of [...lengths.keys()].sort((a, b) => lengths[b]! - lengths[a]!)) {
    const run = runs.at(-1);
    if (run && lengths[i]! >= LEAST_FILL * lengths[run[0]!]!) run.push(i);
    else runs.push([i]);
  }
  return runs;
}

function unsupported(reason: string): OnpolicyError {
  return errorAt('model', 'UNSUPPORTED', `this ONNX graph makes no embeddings here: ${reason}`);
}
