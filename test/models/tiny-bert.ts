/** A small random BERT as a GGUF file, and its forward pass in plain arithmetic. */
import fs from 'node:fs';
import { encode, type Metadata, normals } from '../rl/tiny-model.ts';

const WIDTH = 64;
const HEADS = 4;
const HIDDEN = 128;
const LAYERS = 2;
const CONTEXT = 64;
const EPSILON = 1e-12;
const RANK = 4;
const WORDS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', ...'abcdefghijklmnopqrstuvwxyz'];
/** `▁x` begins a word, `x` goes on with one. */
const TOKENS = [...WORDS.slice(0, 5), ...WORDS.slice(5).map((word) => `▁${word}`), ...WORDS.slice(5)];

/** Weights by name; matrices are (rows, width). */
export type TinyBert = Readonly<Record<string, Float32Array>>;

/** Writes the file. `pooling`: as GGUF files number it; 4 has a head, of one number or of a number for each label. */
export function writeTinyBert(file: string, pooling: number, labels: string[] = []): TinyBert {
  const normal = normals(5);
  const weights: Record<string, Float32Array> = {};
  const tensors: { name: string; shape: number[]; type: number; bytes: Uint8Array }[] = [];
  const add = (name: string, shape: number[], deviation: number, mean = 0): void => {
    const count = shape.reduce((product, size) => product * size, 1);
    const values = Float32Array.from({ length: count }, () => mean + deviation * normal());
    weights[name] = values;
    tensors.push({ name, shape, type: 0, bytes: new Uint8Array(values.buffer) });
  };
  const norm = (name: string): void => {
    add(`${name}.weight`, [WIDTH], 0.1, 1);
    add(`${name}.bias`, [WIDTH], 0.1);
  };
  const linear = (name: string, from: number, to: number): void => {
    add(`${name}.weight`, [from, to], 1 / Math.sqrt(from));
    add(`${name}.bias`, [to], 0.1);
  };
  add('token_embd.weight', [WIDTH, TOKENS.length], 1);
  add('position_embd.weight', [WIDTH, CONTEXT], 1);
  add('token_types.weight', [WIDTH, 2], 1);
  norm('token_embd_norm');
  for (let layer = 0; layer < LAYERS; layer++) {
    const name = `blk.${layer}`;
    for (const part of ['attn_q', 'attn_k', 'attn_v', 'attn_output']) linear(`${name}.${part}`, WIDTH, WIDTH);
    norm(`${name}.attn_output_norm`);
    linear(`${name}.ffn_up`, WIDTH, HIDDEN);
    linear(`${name}.ffn_down`, HIDDEN, WIDTH);
    norm(`${name}.layer_output_norm`);
  }
  if (pooling === RANK) {
    linear('cls', WIDTH, WIDTH);
    linear('cls.output', WIDTH, Math.max(1, labels.length));
  }
  const metadata: Metadata = [
    ['general.architecture', 'bert'],
    ['general.name', 'tiny-bert'],
    ['bert.context_length', CONTEXT],
    ['bert.embedding_length', WIDTH],
    ['bert.block_count', LAYERS],
    ['bert.feed_forward_length', HIDDEN],
    ['bert.attention.head_count', HEADS],
    ['bert.attention.layer_norm_epsilon', { float: EPSILON }],
    ['bert.attention.causal', false],
    ['bert.pooling_type', pooling],
    ...(labels.length > 0 ? [['bert.classifier.output_labels', labels] as Metadata[number]] : []),
    ['tokenizer.ggml.model', 'bert'],
    ['tokenizer.ggml.pre', 'jina-v2-en'],
    ['tokenizer.ggml.tokens', TOKENS],
    ['tokenizer.ggml.token_type', Int32Array.from(TOKENS, (_, i) => (i < 5 ? 3 : 1))],
    ['tokenizer.ggml.token_type_count', 2],
    ['tokenizer.ggml.padding_token_id', 0],
    ['tokenizer.ggml.unknown_token_id', 1],
    ['tokenizer.ggml.bos_token_id', 2],
    ['tokenizer.ggml.cls_token_id', 2],
    ['tokenizer.ggml.seperator_token_id', 3],
    ['tokenizer.ggml.mask_token_id', 4],
  ];
  fs.writeFileSync(file, encode(metadata, tensors));
  return weights;
}

/** The states behind the last layer, (tokens, width). */
export function bertStates(weights: TinyBert, ids: readonly number[]): number[][] {
  const row = (name: string, at: number): Float32Array =>
    weights[name]!.subarray(at * WIDTH, (at + 1) * WIDTH);
  const norm = (x: number[], name: string): number[] => {
    const mean = x.reduce((sum, value) => sum + value, 0) / WIDTH;
    const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / WIDTH;
    return x.map(
      (value, i) =>
        ((value - mean) / Math.sqrt(variance + EPSILON)) * weights[`${name}.weight`]![i]! +
        weights[`${name}.bias`]![i]!,
    );
  };
  const linear = (x: number[], name: string): number[] => product(weights, x, name);
  const add = (x: number[], y: number[]): number[] => x.map((value, i) => value + y[i]!);
  let states = ids.map((id, position) =>
    norm(
      Array.from(
        row('token_embd.weight', id),
        (value, i) => value + row('position_embd.weight', position)[i]! + row('token_types.weight', 0)[i]!,
      ),
      'token_embd_norm',
    ),
  );
  const size = WIDTH / HEADS;
  for (let layer = 0; layer < LAYERS; layer++) {
    const name = `blk.${layer}`;
    const [q, k, v] = ['attn_q', 'attn_k', 'attn_v'].map((part) =>
      states.map((state) => linear(state, `${name}.${part}`)),
    ) as [number[][], number[][], number[][]];
    states = states.map((state, at) => {
      const mixed = Array<number>(WIDTH).fill(0);
      for (let head = 0; head < HEADS; head++) {
        const from = head * size;
        const dot = (one: number[], other: number[]): number =>
          one.slice(from, from + size).reduce((sum, value, i) => sum + value * other[from + i]!, 0);
        const exps = k.map((key) => Math.exp(dot(q[at]!, key) / Math.sqrt(size)));
        const total = exps.reduce((sum, value) => sum + value, 0);
        for (let i = from; i < from + size; i++)
          mixed[i] = exps.reduce((sum, weight, other) => sum + (weight / total) * v[other]![i]!, 0);
      }
      const seen = norm(add(linear(mixed, `${name}.attn_output`), state), `${name}.attn_output_norm`);
      const hidden = linear(seen, `${name}.ffn_up`).map(gelu);
      return norm(add(linear(hidden, `${name}.ffn_down`), seen), `${name}.layer_output_norm`);
    });
  }
  return states;
}

/** The numbers of the head. */
export function bertHead(weights: TinyBert, ids: readonly number[]): number[] {
  const pooled = product(weights, bertStates(weights, ids)[0]!, 'cls').map(Math.tanh);
  return product(weights, pooled, 'cls.output');
}

function product(weights: TinyBert, x: readonly number[], name: string): number[] {
  const [matrix, bias] = [weights[`${name}.weight`]!, weights[`${name}.bias`]!];
  return Array.from(bias, (start, to) =>
    x.reduce((sum, value, from) => sum + value * matrix[to * x.length + from]!, start),
  );
}

function gelu(x: number): number {
  return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
}
