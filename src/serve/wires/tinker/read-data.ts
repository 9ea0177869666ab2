/** The body of Tinker's `forward_backward`, a message of protocol buffers -> the model, the number of the step, and a request of its run. */
import { type ErrorDetail, OnpolicyError } from '../../../errors.ts';
import {
  type Datum,
  fault,
  invalidRequest,
  type RunDataRequest,
  throwFaults,
} from '../../../protocol/index.ts';
import { floatsIn, int32sIn, int64sIn, ProtobufMessage } from './protobuf.ts';

/** Facts about the step of a body whose data were not read yet. */
export type DataStep = {
  readonly model_id: string;
  /** Number of the step among those of the model, from 1. */
  readonly seq_id: number;
  /** True if no gradient is added. */
  readonly isForward: boolean;
  /** Size of the body. */
  readonly bytes: number;
};

type LossName = 'cross_entropy' | 'importance_sampling' | 'ppo' | 'cispo' | 'dro';

const OF_ATTEMPTS = ['target_tokens', 'logprobs', 'advantages'];
/** Inputs of each loss. */
const INPUTS: Readonly<Record<LossName, readonly string[]>> = {
  cross_entropy: ['target_tokens', 'weights'],
  importance_sampling: OF_ATTEMPTS,
  ppo: OF_ATTEMPTS,
  cispo: OF_ATTEMPTS,
  dro: OF_ATTEMPTS,
};

/** Settings that differ from those of a training run where a client sends none: its clip has only an upper bound. */
const CONFIG: { readonly [Name in LossName]?: Readonly<Record<string, number>> } = {
  cispo: { clip_low_threshold: 0, clip_high_threshold: 4 },
};

/** Most numbers of all sparse inputs, whatever a server allows. */
const MOST_NUMBERS = 2 ** 27;

/** How numbers are encoded, by their number on the wire. */
const DTYPES = [null, { of: floatsIn }, { of: int64sIn }] as const;

/** Opens a body. @throws OnpolicyError `INVALID_REQUEST` if it is no message */
export function openData(bytes: Uint8Array): DataStep & { readonly message: ProtobufMessage } {
  const message = new ProtobufMessage(bytes);
  return {
    message,
    model_id: message.text(1),
    seq_id: message.integer(2),
    isForward: message.integer(6) !== 0,
    bytes: bytes.length,
  };
}

/**
 * Reads the data and the loss of a body.
 * @param mostNumbers most numbers of all sparse inputs when they are written out
 * @throws OnpolicyError `INVALID_REQUEST` with all faults, `TOO_LARGE`
 */
export function readData(message: ProtobufMessage, mostNumbers: number): RunDataRequest {
  const loss = message.text(4);
  if (!isLoss(loss))
    throw invalidRequest({
      listed: [fault(['loss_fn'], 'value', `one of ${Object.keys(INPUTS).join(', ')}`, loss)],
      count: 1,
    });
  const reader = new DataReader(loss, mostNumbers);
  const data = message.messages(3).map((datum, i) => reader.datum(datum, ['data', String(i)]));
  throwFaults(reader.faults);
  const config = message.entries(5).map(([name, entry]) => [name, entry.double(2)]);
  const loss_fn_config = { ...CONFIG[loss], ...Object.fromEntries(config) };
  return { data, loss_fn: loss, loss_fn_config, weighted_only: false };
}

/** Reads data and collects their faults. */
class DataReader {
  readonly faults: ErrorDetail[] = [];
  readonly #loss: LossName;
  #numbersLeft: number;

  constructor(loss: LossName, mostNumbers: number) {
    this.#loss = loss;
    this.#numbersLeft = Math.min(mostNumbers, MOST_NUMBERS);
  }

  datum(datum: ProtobufMessage, loc: readonly string[]): Datum {
    const input = [...loc, 'model_input', 'chunks'];
    const chunks = datum.messages(1).map((chunk, i) => this.#chunk(chunk, [...input, String(i)]));
    const known = INPUTS[this.#loss];
    const inputs = datum.entries(2).flatMap(([name, entry]): [string, object][] => {
      const at = [...loc, 'loss_fn_inputs', name];
      const tensor = entry.message(2);
      if (known.includes(name)) return [[name, tensor ? this.#tensor(tensor, at) : { data: [] }]];
      this.#refuse(at, 'unsupported', `no such input of ${this.#loss}, which has ${known.join(', ')}`);
      return [];
    });
    return {
      model_input: { chunks },
      loss_fn_inputs: Object.fromEntries(inputs) as Datum['loss_fn_inputs'],
    };
  }

  #chunk(chunk: ProtobufMessage, loc: readonly string[]): { tokens: readonly number[] } {
    if (chunk.has(2) || chunk.has(3))
      this.#refuse(loc, 'unsupported', 'tokens: training runs read no images and sounds');
    const tokens = int32sIn(chunk.message(1)?.bytes(1) ?? new Uint8Array());
    if (!tokens) this.#refuse([...loc, 'tokens'], 'length', '32-bit integers');
    return { tokens: tokens ?? [] };
  }

  #tensor(
    tensor: ProtobufMessage,
    loc: readonly string[],
  ): { data: readonly number[]; shape?: readonly number[] } {
    const dtype = DTYPES[tensor.integer(3)] ?? null;
    if (!dtype) {
      this.#refuse([...loc, 'dtype'], 'unsupported', 'float32 or int64');
      return { data: [] };
    }
    const sparse = tensor.message(2);
    const shape = tensor.integers(4);
    const values = dtype.of((sparse ?? tensor).bytes(1) ?? new Uint8Array());
    if (!values?.every(Number.isFinite)) {
      this.#refuse(loc, values ? 'value' : 'length', values ? 'finite numbers' : 'numbers of its dtype');
      return { data: [] };
    }
    if (!sparse) return { data: values, ...(shape.length > 0 ? { shape } : {}) };
    return { data: this.#dense(values, sparse, shape, loc), shape };
  }

  /** Writes a matrix of compressed rows out. */
  #dense(
    values: readonly number[],
    sparse: ProtobufMessage,
    shape: readonly number[],
    loc: readonly string[],
  ): readonly number[] {
    const starts = int64sIn(sparse.bytes(2) ?? new Uint8Array()) ?? []; // (rows + 1) places in values
    const columns = int64sIn(sparse.bytes(3) ?? new Uint8Array()) ?? []; // (values)
    const [rows = -1, width = -1] = shape;
    const isMatrix =
      shape.length === 2 &&
      width >= 0 &&
      starts.length === rows + 1 &&
      starts[0] === 0 &&
      starts.at(-1) === values.length &&
      starts.every((start, i) => i === 0 || start >= starts[i - 1]!) &&
      columns.length === values.length &&
      columns.every((column) => column >= 0 && column < width);
    if (!isMatrix) {
      this.#refuse(loc, 'value', 'a matrix of compressed sparse rows');
      return [];
    }
    this.#numbersLeft -= rows * width;
    if (this.#numbersLeft < 0)
      throw new OnpolicyError('TOO_LARGE', `${loc.join('.')}: the sparse inputs stand for too many numbers`);
    const dense = new Array<number>(rows * width).fill(0);
    for (let row = 0; row < rows; row++)
      for (let i = starts[row]!; i < starts[row + 1]!; i++) dense[row * width + columns[i]!] = values[i]!;
    return dense;
  }

  #refuse(loc: readonly string[], type: Parameters<typeof fault>[1], expected: string): void {
    this.faults.push({ loc, msg: `${loc.join('.')}: expected ${expected}`, type });
  }
}

function isLoss(name: string): name is LossName {
  return Object.hasOwn(INPUTS, name);
}
