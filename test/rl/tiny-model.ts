/** A small random model in any weight type, written as a GGUF file. */
import fs from 'node:fs';
import { loadAddon } from '../../src/engine/native/index.ts';
import { openLibraries } from '../../src/engine/native/libraries.ts';
import type { PackedRow } from '../../src/protocol/index.ts';

/** Architectures of tiny models: those that can be trained. */
export type TinyArchitecture = keyof typeof TRAITS;

/** The model's shape; sizes must be whole blocks of the type. */
export type TinyModel = {
  readonly architecture: TinyArchitecture;
  /** As ggml names it, for example `q4_K`. */
  readonly type: string;
  readonly width?: number;
  readonly hidden?: number;
  readonly heads?: number;
  readonly kvHeads?: number;
  readonly headSize?: number;
  readonly layers?: number;
  readonly vocabularySize?: number;
  readonly isTied?: boolean;
  /** Matrices of the feed-forward part, two of which a token takes. */
  readonly experts?: number;
  /** Further metadata, and tensors of 8 numbers around 2. */
  readonly metadata?: Metadata;
  readonly tensors?: readonly string[];
  /** In place of its byte-level vocabulary. */
  readonly tokenizer?: Metadata;
  /** How states become a vector, as GGUF files number it: 3 is the last token's. */
  readonly pooling?: number;
  /** Rows of the output matrix that are the head of a ranking model, too. */
  readonly headRows?: readonly number[];
};

/** One sequence; every token but the first is a target. */
export function packSequence(tokens: Int32Array): PackedRow {
  const size = tokens.length;
  return {
    tokens,
    positions: Int32Array.from({ length: size }, (_, i) => i),
    groupIds: new Int32Array(size),
    parentIds: new Int32Array(size),
    logitRows: Int32Array.from({ length: size - 1 }, (_, i) => i),
    targetTokens: tokens.slice(1),
  };
}

/** A prompt with answers that all see it and not each other; every token of an answer is a target. */
export function packAnswers(promptSize: number, answerSizes: readonly number[]): PackedRow {
  const groups = [promptSize, ...answerSizes].flatMap((size, group) => Array<number>(size).fill(group));
  const starts = [promptSize, ...answerSizes].map((_, group) => groups.indexOf(group));
  const positions = groups.map((group, i) => (group === 0 ? i : promptSize + i - starts[group]!));
  const targets = groups.flatMap((group, i) => (group === 0 ? [] : [i]));
  const tokens = Int32Array.from(groups, (_, i) => (i * 37) % 250);
  return {
    tokens,
    positions: Int32Array.from(positions),
    groupIds: Int32Array.from(groups),
    parentIds: new Int32Array(groups.length),
    logitRows: Int32Array.from(targets, (i) => (positions[i] === promptSize ? promptSize - 1 : i - 1)),
    targetTokens: Int32Array.from(targets, (i) => tokens[i]!),
  };
}

/** A prompt of 16 tokens with two answers of 16. */
export const sharedPromptRow = packAnswers(16, [16, 16]);

/** A generator of normal numbers from a seed. */
export function normals(seed: number): () => number {
  let state = seed >>> 0;
  const uniform = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    let mixed = state ^ (state >>> 15);
    mixed = Math.imul(mixed, 0x2c1b3c6d);
    mixed ^= mixed >>> 12;
    return ((mixed >>> 0) + 0.5) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** Returns random numbers of the normal distribution, whole ones below a count, and lists in a random order, all from one sequence. */
export function draws(seed: number) {
  const normal = normals(seed);
  const below = (count: number): number => Math.floor(Math.abs(normal() * 1e4)) % count;
  const shuffled = <Item>(items: readonly Item[]): Item[] =>
    items
      .map((item) => [normal(), item] as const)
      .sort(([a], [b]) => a - b)
      .map(([, item]) => item);
  return { normal, below, shuffled };
}

/** Keys and values of a GGUF file's header. */
export type Metadata = [
  string,
  string | number | boolean | { float: number } | string[] | Int32Array | Float32Array,
][];

/** Every second layer sees everything, the others fewer positions than the rows of tests have. */
const WINDOWS: Metadata = [
  ['attention.sliding_window', 12],
  ['attention.sliding_window_pattern', 2],
];
/** Far from 1, so that a factor at the wrong place shows. */
const MULTIPLIERS: Metadata = [
  ['embedding_scale', { float: 3 }],
  ['residual_scale', { float: 0.4 }],
  ['attention.scale', { float: 0.05 }],
  ['logit_scale', { float: 2 }],
];

/** How the files of an architecture differ from those of a plain decoder. */
type Traits = {
  readonly metadata?: Metadata;
  readonly hasBias?: boolean;
  readonly hasHeadNorms?: boolean;
  readonly hasPostNorms?: boolean;
  readonly isFused?: boolean;
};

const TRAITS = {
  llama: {},
  qwen2: { hasBias: true },
  qwen3: { hasHeadNorms: true },
  qwen3moe: { hasHeadNorms: true },
  gemma2: {
    hasPostNorms: true,
    metadata: [
      ...WINDOWS,
      ['attn_logit_softcapping', { float: 2 }],
      ['final_logit_softcapping', { float: 3 }],
    ],
  },
  gemma3: {
    hasHeadNorms: true,
    hasPostNorms: true,
    metadata: [...WINDOWS, ['rope.freq_base_swa', { float: 5000 }]],
  },
  smollm3: {},
  granite: { metadata: MULTIPLIERS },
  granitemoe: { metadata: MULTIPLIERS },
  phi3: { isFused: true },
} as const satisfies Record<string, Traits>;

/** Writes the file. It has a byte-level vocabulary, so that llama.cpp can load it too. */
export async function writeTinyModel(file: string, model: TinyModel): Promise<void> {
  await openLibraries(false);
  const { architecture: arch, type, experts = 0 } = model;
  const traits: Traits = TRAITS[arch] ?? {}; // tests write others, too
  const width = model.width ?? 256;
  const hidden = model.hidden ?? 512;
  const heads = model.heads ?? 4;
  const kvHeads = model.kvHeads ?? 2;
  const headSize = model.headSize ?? 64;
  const layers = model.layers ?? 2;
  const vocabulary = model.vocabularySize ?? 320;
  const normal = normals(7);
  const tensors: { name: string; shape: number[]; type: number; bytes: Uint8Array }[] = [];
  const add = (name: string, shape: number[], deviation: number, kind = 'f32', mean = 0) => {
    const count = shape.reduce((product, size) => product * size, 1);
    const values = Float32Array.from({ length: count }, () => mean + deviation * normal());
    const bytes = loadAddon().quantizeRows(kind, values, shape[0]!);
    tensors.push({ name, shape, type: bytes.type, bytes });
  };
  add('token_embd.weight', [width, vocabulary], 1, type);
  add('output_norm.weight', [width], 0.1, 'f32', 1);
  if (!model.isTied) add('output.weight', [width, vocabulary], 1.5 / Math.sqrt(width), type);
  for (let layer = 0; layer < layers; layer++) {
    const name = (part: string) => `blk.${layer}.${part}`;
    const linear = (part: string, from: number, to: number) =>
      add(name(`${part}.weight`), [from, to], 1 / Math.sqrt(from), type);
    add(name('attn_norm.weight'), [width], 0.1, 'f32', 1);
    add(name('ffn_norm.weight'), [width], 0.1, 'f32', 1);
    const expert = (part: string, from: number, to: number) =>
      add(name(`${part}_exps.weight`), [from, to, experts], 1 / Math.sqrt(from), type);
    if (traits.isFused) linear('attn_qkv', width, (heads + 2 * kvHeads) * headSize);
    else {
      linear('attn_q', width, heads * headSize);
      linear('attn_k', width, kvHeads * headSize);
      linear('attn_v', width, kvHeads * headSize);
    }
    linear('attn_output', heads * headSize, width);
    const matrix = experts > 0 ? expert : linear;
    if (experts > 0) add(name('ffn_gate_inp.weight'), [width, experts], 1 / Math.sqrt(width));
    if (traits.isFused) linear('ffn_up', width, 2 * hidden);
    else {
      matrix('ffn_gate', width, hidden);
      matrix('ffn_up', width, hidden);
    }
    matrix('ffn_down', hidden, width);
    if (traits.hasBias)
      for (const [part, size] of [
        ['attn_q', heads],
        ['attn_k', kvHeads],
        ['attn_v', kvHeads],
      ] as const)
        add(name(`${part}.bias`), [size * headSize], 0.3);
    if (traits.hasPostNorms)
      for (const part of ['post_attention_norm', 'post_ffw_norm'])
        add(name(`${part}.weight`), [width], 0.1, 'f32', 1);
    if (traits.hasHeadNorms)
      for (const part of ['attn_q_norm', 'attn_k_norm'])
        add(name(`${part}.weight`), [headSize], 0.1, 'f32', 1);
  }
  for (const name of model.tensors ?? []) add(name, [8], 0.2, 'f32', 2);
  if (model.headRows) {
    const { bytes, type: kind } = tensors.find(({ name }) => name === 'output.weight')!;
    const rowBytes = bytes.length / vocabulary;
    const rows = model.headRows.map((row) => bytes.subarray(row * rowBytes, (row + 1) * rowBytes));
    const shape = [width, rows.length];
    tensors.push({ name: 'cls.output.weight', shape, type: kind, bytes: Buffer.concat(rows) });
  }
  const metadata: Metadata = [
    ['general.architecture', arch],
    ['general.name', 'tiny'],
    [`${arch}.context_length`, 2048],
    [`${arch}.embedding_length`, width],
    [`${arch}.block_count`, layers],
    [`${arch}.feed_forward_length`, hidden],
    [`${arch}.attention.head_count`, heads],
    [`${arch}.attention.head_count_kv`, kvHeads],
    [`${arch}.attention.key_length`, headSize],
    [`${arch}.attention.value_length`, headSize],
    [`${arch}.rope.dimension_count`, headSize],
    [`${arch}.attention.layer_norm_rms_epsilon`, { float: 1e-6 }],
    [`${arch}.rope.freq_base`, { float: 10000 }],
    ...(traits.metadata ?? []).map(([key, value]): Metadata[number] => [`${arch}.${key}`, value]),
    ...(experts > 0
      ? ([
          [`${arch}.expert_count`, experts],
          [`${arch}.expert_used_count`, 2],
          [`${arch}.expert_feed_forward_length`, hidden],
        ] as Metadata)
      : []),
    ...(model.pooling === undefined ? [] : [[`${arch}.pooling_type`, model.pooling] as Metadata[number]]),
    ...(model.metadata ?? []),
    ...(model.tokenizer ?? byteLevel(vocabulary)),
  ];
  fs.writeFileSync(file, encode(metadata, tensors));
}

function byteLevel(vocabulary: number): Metadata {
  return [
    ['tokenizer.ggml.model', 'gpt2'],
    ['tokenizer.ggml.pre', 'qwen2'],
    [
      'tokenizer.ggml.tokens',
      Array.from({ length: vocabulary }, (_, i) => (i < 94 ? String.fromCharCode(33 + i) : `<${i}>`)),
    ],
    ['tokenizer.ggml.token_type', Int32Array.from({ length: vocabulary }, (_, i) => (i < 94 ? 1 : 3))],
    ['tokenizer.ggml.merges', ['! "']],
    ['tokenizer.ggml.eos_token_id', vocabulary - 1],
    ['tokenizer.ggml.bos_token_id', vocabulary - 2],
  ];
}

/** The bytes of a GGUF file. */
export function encode(
  metadata: Metadata,
  tensors: { name: string; shape: number[]; type: number; bytes: Uint8Array }[],
): Uint8Array {
  const parts: Buffer[] = [];
  const put = (size: number, fill: (buffer: Buffer) => void) => {
    const buffer = Buffer.alloc(size);
    fill(buffer);
    parts.push(buffer);
  };
  const u32 = (value: number) => put(4, (buffer) => buffer.writeUInt32LE(value));
  const u64 = (value: number) => put(8, (buffer) => buffer.writeBigUInt64LE(BigInt(value)));
  const text = (value: string) => {
    const bytes = Buffer.from(value);
    u64(bytes.length);
    parts.push(bytes);
  };
  parts.push(Buffer.from('GGUF'));
  u32(3);
  u64(tensors.length);
  u64(metadata.length);
  for (const [key, value] of metadata) {
    text(key);
    if (typeof value === 'string') {
      u32(8);
      text(value);
    } else if (typeof value === 'boolean') {
      u32(7);
      parts.push(Buffer.of(value ? 1 : 0));
    } else if (typeof value === 'number') {
      u32(4);
      u32(value);
    } else if (ArrayBuffer.isView(value)) {
      u32(9);
      u32(value instanceof Int32Array ? 5 : 6);
      u64(value.length);
      parts.push(Buffer.from(value.buffer));
    } else if (Array.isArray(value)) {
      u32(9);
      u32(8);
      u64(value.length);
      for (const item of value) text(item);
    } else {
      u32(6);
      put(4, (buffer) => buffer.writeFloatLE(value.float));
    }
  }
  let offset = 0;
  for (const tensor of tensors) {
    text(tensor.name);
    u32(tensor.shape.length);
    for (const size of tensor.shape) u64(size);
    u32(tensor.type);
    u64(offset);
    offset += Math.ceil(tensor.bytes.length / 32) * 32;
  }
  const length = () => parts.reduce((sum, part) => sum + part.length, 0);
  const pad = () => parts.push(Buffer.alloc((32 - (length() % 32)) % 32));
  pad();
  for (const tensor of tensors) {
    parts.push(Buffer.from(tensor.bytes));
    pad();
  }
  return Buffer.concat(parts);
}
