// The parts of a GGUF file and a seed -> a damaged file: what was done, its bytes, and the name of the file.
import { ARRAY, BLOCKS, bytesOf, encode, STRING } from './gguf.mjs';
import { randomFrom } from './random.mjs';

const SIZES = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };
const INTEGERS = [0n, 1n, 2n, 3n, 4n, 5n, 7n, 8n, 16n, 31n, 32n, 33n, 63n, 64n, 100n, 128n, 255n, 256n, 511n, 512n, 513n, 1000n,
  1024n, 4096n, 65_535n, 65_536n, 2n ** 24n, 2n ** 31n - 1n, 2n ** 31n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 53n, 2n ** 62n,
  2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n, -2n]; // biome-ignore format: a table
const FLOATS = [
  0,
  -0,
  1,
  -1,
  0.5,
  1e-45,
  1e-30,
  -1e-6,
  1e-5,
  2,
  10,
  1e4,
  1e6,
  1e30,
  3.4e38,
  -3.4e38,
  Infinity,
  -Infinity,
  NaN,
];
const TEXTS = ['', 'none', 'no_vocab', 'llama', 'gpt2', 'bert', 't5', 'rwkv', 'plamo2', 'default', 'yarn', 'linear', 'longrope', 'xyz',
  'qwen2', 'qwen3', 'gemma3', 'mamba', 'clip', 'hybriddna', '\u0000', '%s%n%d', 'a'.repeat(10_000), '\u00ff\u00fe', '{{', '{% for x in y %}',
  '{{ raise_exception("x") }}', 'mean', '1', '-1', '../x']; // biome-ignore format: a table

/** A number as the bytes of a type. */
function number(type, random) {
  const bytes = Buffer.alloc(SIZES[type]);
  if (type === 6) bytes.writeFloatLE(random.pick(FLOATS));
  else if (type === 12) bytes.writeDoubleLE(random.pick(FLOATS));
  else {
    const wide = Buffer.alloc(8);
    wide.writeBigUInt64LE(BigInt.asUintN(64, random.pick(INTEGERS)));
    wide.copy(bytes);
  }
  return bytes;
}

/** A value near the one that is there. */
function nudge(bytes, random) {
  const changed = Buffer.from(bytes);
  if (random.chance(0.5)) changed[0] = (changed[0] + random.pick([1, 255, 2, 254, 16])) & 255;
  else changed[random.below(changed.length)] ^= 1 << random.below(8);
  return changed;
}

/** A value of a type. A type that does not exist has four bytes. */
function item(type, random, texts = TEXTS) {
  if (type !== STRING && !(type in SIZES)) return random.bytes(4);
  return type === STRING ? Buffer.from(random.pick(texts)) : number(type, random);
}

function flip(bytes, random) {
  if (bytes.length === 0) return Buffer.from([random.below(256)]);
  const changed = Buffer.from(bytes);
  changed[random.below(changed.length)] ^= 1 << random.below(8);
  return changed;
}

const VALUE_TYPES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 255];

/** Edits of one key. */
const KEY_EDITS = {
  value: (key, { texts }, random) => {
    const at = random.below(Math.max(key.items.length, 1));
    key.items[at] = item(key.type === ARRAY ? key.of : key.type, random, texts);
  },
  nudge: (key, _, random) => {
    const at = random.below(Math.max(key.items.length, 1));
    const isText = (key.type === ARRAY ? key.of : key.type) === STRING;
    if (key.items[at]?.length) key.items[at] = (isText ? flip : nudge)(key.items[at], random);
  },
  type: (key, _, random) => {
    key.type = random.pick(VALUE_TYPES.filter((type) => type !== ARRAY));
    delete key.of;
    key.items = [item(key.type, random)];
  },
  sameValueOtherType: (key, _, random) => {
    if (key.type === ARRAY || key.type === STRING || key.items[0].length !== 4) return;
    key.type = random.pick([4, 5, 6, 10, 11]);
    if (key.type >= 10) key.items = [Buffer.concat([key.items[0], Buffer.alloc(4)])];
  },
  toArray: (key, _, random) => {
    if (key.type === ARRAY) return;
    const count = random.pick([0, 1, 2, 3, 5, 512, 513]);
    Object.assign(key, { type: ARRAY, of: key.type, items: Array.from({ length: count }, () => key.items[0]) });
    if (random.chance(0.3) && count > 0) key.items[random.below(count)] = item(key.of, random);
  },
  missing: (key, parts) => {
    parts.keys = parts.keys.filter((other) => other !== key);
  },
  twice: (key, parts) => {
    parts.keys.push({ ...key });
  },
  length: (key, _, random) => {
    if (key.type !== ARRAY) return;
    const keep = random.pick([0, 1, Math.floor(key.items.length / 2), key.items.length - 1, key.items.length]);
    key.items = key.items.slice(0, Math.max(keep, 0));
    if (random.chance(0.3)) key.items.push(...Array.from({ length: random.pick([1, 2, 300]) }, () => item(key.of, random)));
  },
  count: (key, _, random) => {
    if (key.type === ARRAY) key.count = random.pick(INTEGERS);
  },
  elementType: (key, _, random) => {
    if (key.type !== ARRAY) return;
    key.of = random.pick(VALUE_TYPES);
    if (random.chance(0.5) && key.of in SIZES) key.items = key.items.map(() => number(key.of, random));
    if (random.chance(0.5) && key.of === STRING) key.items = key.items.map(() => random.bytes(random.below(6)));
  },
  duplicateElement: (key, _, random) => {
    if (key.type === ARRAY && key.items.length > 1)
      key.items[random.below(key.items.length)] = random.pick(key.items);
  },
  allElements: (key, _, random) => {
    if (key.type !== ARRAY) return;
    const same = item(key.of in SIZES || key.of === STRING ? key.of : 0, random);
    key.items = key.items.map(() => same);
  },
  shuffle: (key, _, random) => {
    if (key.type !== ARRAY || key.items.length < 2) return;
    for (let left = 8; left > 0; left--) {
      const [one, other] = [random.below(key.items.length), random.below(key.items.length)];
      [key.items[one], key.items[other]] = [key.items[other], key.items[one]];
    }
  },
  name: (key, _, random) => {
    key.name = random.pick(['', 'x', flip(Buffer.from(key.name), random).toString('latin1'), '__proto__', 'a'.repeat(70_000)]);
  },
}; // biome-ignore format: one edit a line

/** Keys that a file may have: added to one that lacks them. */
const FURTHER_KEYS = ['general.alignment', 'split.count', 'split.no', 'ARCH.rope.scaling.type', 'ARCH.rope.scaling.factor',
  'ARCH.expert_count', 'ARCH.expert_used_count', 'ARCH.nextn_predict_layers', 'ARCH.pooling_type', 'ARCH.attention.causal',
  'ARCH.attention.sliding_window', 'ARCH.attention.sliding_window_pattern', 'ARCH.attention.key_length', 'ARCH.attention.value_length',
  'ARCH.attention.layer_norm_epsilon', 'ARCH.attention.clamp_kqv', 'ARCH.attention.max_alibi_bias', 'ARCH.logit_scale',
  'ARCH.rope.dimension_count', 'ARCH.rope.freq_base', 'ARCH.rope.dimension_sections', 'ARCH.expert_feed_forward_length',
  'ARCH.leading_dense_block_count', 'ARCH.embedding_length_out', 'ARCH.vocab_size', 'ARCH.full_attention_interval',
  'ARCH.expert_group_count', 'ARCH.expert_group_used_count', 'ARCH.expert_gating_func', 'ARCH.rope.scaling.original_context_length',
  'ARCH.features_length', 'ARCH.use_parallel_residual', 'ARCH.attention.key_length_mla', 'ARCH.attention.shared_kv_layers',
  'tokenizer.ggml.bos_token_id', 'tokenizer.ggml.eot_token_id', 'tokenizer.ggml.eom_token_id', 'tokenizer.ggml.unknown_token_id',
  'tokenizer.ggml.padding_token_id', 'tokenizer.ggml.seperator_token_id', 'tokenizer.ggml.cls_token_id', 'tokenizer.ggml.mask_token_id',
  'tokenizer.ggml.add_bos_token', 'tokenizer.ggml.add_eos_token', 'tokenizer.ggml.add_sep_token', 'tokenizer.ggml.add_space_prefix',
  'tokenizer.ggml.remove_extra_whitespaces', 'tokenizer.ggml.precompiled_charsmap', 'tokenizer.ggml.token_type_count', 'tokenizer.ggml.scores',
  'tokenizer.ggml.fim_pre_token_id', 'tokenizer.ggml.eog_token_ids', 'tokenizer.ggml.pre', 'general.file_type', 'general.name']; // biome-ignore format: a table

function addKey(parts, random) {
  const arch =
    parts.keys.find(({ name }) => name === 'general.architecture')?.items[0]?.toString() ?? 'llama';
  const name = random.pick(parts.furtherKeys ?? FURTHER_KEYS).replace('ARCH', arch);
  parts.keys = parts.keys.filter((key) => key.name !== name);
  const type = random.pick([4, 4, 4, 5, 6, 7, STRING, ARRAY, 2]);
  if (type !== ARRAY) parts.keys.push({ name, type, items: [item(type, random, parts.texts)] });
  else {
    const of = random.pick([4, 5, 6, 7, STRING]);
    const length = random.pick([0, 1, 2, 3, 4, 600]);
    parts.keys.push({ name, type, of, items: Array.from({ length }, () => item(of, random)) });
  }
  return `adds ${name} of type ${type}`;
}

/** As much data as type and sizes need, where that is not too much. */
function refit(tensor) {
  const bytes = bytesOf(tensor);
  if (!Number.isSafeInteger(bytes) || bytes > 2 ** 24 || bytes < 0) return;
  const data = Buffer.alloc(bytes);
  tensor.data.copy(data);
  tensor.data = data;
}

const TENSOR_EDITS = {
  type: (tensor, _, random) => {
    tensor.type = random.pick(random.chance(0.9) ? Object.keys(BLOCKS).map(Number) : [4, 5, 31, 38, 43, 2 ** 31, 2 ** 32 - 1]);
    if (random.chance(0.9)) refit(tensor);
  },
  size: (tensor, _, random) => {
    if (tensor.dims.length === 0) return;
    const at = random.below(tensor.dims.length);
    tensor.dims[at] = random.chance(0.5) ? random.pick(INTEGERS) : tensor.dims[at] + random.pick([1n, -1n, 32n, -32n]);
    if (random.chance(0.9)) refit(tensor);
  },
  dimensions: (tensor, _, random) => {
    tensor.dims = random.pick([[], tensor.dims.slice(0, 1), [...tensor.dims, 1n], [...tensor.dims, 2n], [...tensor.dims].reverse(), [1n, 1n, 1n, 1n, 1n]]);
    if (random.chance(0.9)) refit(tensor);
  },
  name: (tensor, parts, random) => {
    tensor.name = random.pick(['', 'x', random.pick(parts.tensors).name, 'a'.repeat(64), flip(Buffer.from(tensor.name), random).toString('latin1'),
      tensor.name.replace(/\d+/, '9'), tensor.name.replace(/\d+/, '4294967296'), tensor.name.replace('weight', 'bias')]);
  },
  missing: (tensor, parts) => {
    parts.tensors = parts.tensors.filter((other) => other !== tensor);
  },
  twice: (tensor, parts) => {
    parts.tensors.push({ ...tensor });
  },
  swap: (tensor, parts, random) => {
    const other = random.pick(parts.tensors);
    [tensor.name, other.name] = [other.name, tensor.name];
  },
  offset: (tensor, _, random) => {
    tensor.offset = random.pick(INTEGERS);
  },
  add: (tensor, parts, random) => {
    const name = tensor.name.replace(/[^.]+\.(weight|bias)$/, (part) => random.pick([`${part}_b`, 'attn_q.bias', 'attn_q_norm.weight', 'attn_k_norm.weight',
      'rope_freqs.weight', 'ffn_gate_inp.weight', 'attn_sinks.weight', 'attn_output.bias', 'ffn_up.bias', 'layer_output_norm.weight', 'attn_qkv.weight']));
    parts.tensors.push({ ...tensor, name });
  },
}; // biome-ignore format: one edit a line

const DATA_EDITS = {
  nan: (tensor) => {
    for (let at = 0; at + 4 <= tensor.data.length; at += 4) tensor.data.writeUInt32LE(0x7fc00000, at);
  },
  infinite: (tensor) => {
    for (let at = 0; at + 4 <= tensor.data.length; at += 4) tensor.data.writeUInt32LE(0x7f800000, at);
  },
  huge: (tensor) => {
    for (let at = 0; at + 4 <= tensor.data.length; at += 4) tensor.data.writeUInt32LE(0x7f7fffff, at);
  },
  random: (tensor, _, random) => {
    tensor.data = random.bytes(Math.min(tensor.data.length, 4096)).subarray(0, tensor.data.length);
    tensor.data = Buffer.concat([tensor.data], Math.max(tensor.data.length, 0));
  },
  zero: (tensor) => {
    tensor.data.fill(0);
  },
  flip: (tensor, _, random) => {
    tensor.data = flip(tensor.data, random);
  },
};

function copy({ keys, tensors, ...others }) {
  return {
    ...others,
    keys: keys.map((key) => ({ ...key, items: [...key.items] })),
    tensors: tensors.map((tensor) => ({ ...tensor, dims: [...tensor.dims], data: Buffer.from(tensor.data) })),
  };
}

const pickEdit = (edits, random) => random.pick(Object.keys(edits));

/** Edits of the parts of a file, each with its weight. */
const PART_EDITS = [
  [40, (parts, random) => {
    const key = random.pick(parts.keys);
    if (!key) return 'nothing';
    const edit = pickEdit(KEY_EDITS, random);
    const label = `${edit} of the key ${key.name.slice(0, 80)}`;
    KEY_EDITS[edit](key, parts, random);
    return label;
  }],
  [15, addKey],
  [20, (parts, random) => {
    const tensor = random.pick(parts.tensors);
    if (!tensor) return 'nothing';
    const edit = pickEdit(TENSOR_EDITS, random);
    const label = `${edit} of the tensor ${tensor.name}`;
    TENSOR_EDITS[edit](tensor, parts, random);
    return label;
  }],
  [8, (parts, random) => {
    const tensor = random.pick(parts.tensors);
    if (!tensor) return 'nothing';
    const edit = pickEdit(DATA_EDITS, random);
    const size = tensor.data.length;
    DATA_EDITS[edit](tensor, parts, random);
    tensor.data = Buffer.concat([tensor.data], size);
    return `${edit} data of the tensor ${tensor.name}`;
  }],
  [3, (parts, random) => {
    parts.alignment = random.pick([1, 2, 4, 8, 16, 32, 64, 4096]);
    parts.keys.push({ name: 'general.alignment', type: 4, items: [Buffer.from([parts.alignment & 255, parts.alignment >> 8, 0, 0])] });
    return `alignment ${parts.alignment}`;
  }],
  [2, (parts, random) => {
    const what = random.pick(['keys', 'tensors']);
    parts.counts = { [what]: random.pick([...INTEGERS, BigInt(parts[what].length - 1), BigInt(parts[what].length + 1)]) };
    return `${what}: ${parts.counts[what]}`;
  }],
  [1, (parts, random) => {
    parts.version = random.pick([0, 1, 2, 4, 0x3000000, 2 ** 32 - 1]);
    return `version ${parts.version}`;
  }],
]; // biome-ignore format: a table
const WEIGHT = PART_EDITS.reduce((sum, [weight]) => sum + weight, 0);

function editParts(parts, random) {
  let left = random.below(WEIGHT);
  for (const [weight, edit] of PART_EDITS) {
    left -= weight;
    if (left < 0) return edit(parts, random);
  }
}

/** Edits the bytes of a file at random. */
function editBytes(bytes, random) {
  const kind = random.pick(['cut', 'flip', 'flip', 'flips', 'random', 'longer']);
  const headEnd = Math.min(bytes.length, 20_000);
  if (kind === 'cut')
    return [kind, bytes.subarray(0, random.below(random.chance(0.7) ? headEnd : bytes.length))];
  if (kind === 'longer') return [kind, Buffer.concat([bytes, random.bytes(100)])];
  const changed = Buffer.from(bytes);
  for (let left = kind === 'flips' ? 20 : 1; left > 0; left--)
    changed[random.below(random.chance(0.8) ? headEnd : bytes.length)] ^= 1 << random.below(8);
  if (kind === 'random') random.bytes(16).copy(changed, random.below(headEnd));
  return [kind, changed];
}

const NAMES = ['x-00001-of-00000.gguf', 'x-00001-of-00001.gguf', 'x-00001-of-00002.gguf', 'x-00002-of-00002.gguf', 'x-99999-of-99999.gguf',
  'x-00000-of-00001.gguf', 'x', '%s%n.gguf', 'ä ö.gguf', 'x.GGUF', `${'y'.repeat(200)}.gguf`]; // biome-ignore format: a table

/** The mutant with this number. */
export function mutate(parts, seed) {
  const random = randomFrom(seed);
  const done = [];
  const changed = copy(parts);
  const edits = random.chance(0.7) ? 1 : random.pick([0, 2, 2, 3, 5]);
  const isInParts = random.chance(0.85);
  if (isInParts) for (let left = edits; left > 0; left--) done.push(editParts(changed, random));
  let bytes = encode(changed);
  if (!isInParts || random.chance(0.02)) {
    const [kind, edited] = editBytes(bytes, random);
    bytes = edited;
    done.push(`${kind} of bytes`);
  }
  const name = random.chance(0.03) ? random.pick(NAMES) : 'model.gguf';
  return { done: done.join('; ') + (name === 'model.gguf' ? '' : ` as ${name}`), bytes, name };
}
