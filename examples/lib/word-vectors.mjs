/**
 * Texts -> an embedding model of half a megabyte or so, which knows their words and nothing of their meaning: texts are the more similar the
 * more words they share. It stands in for a real one where nothing is downloaded.
 */
import { meta, writeGguf } from '../../bench/model/gguf.mjs';

const WIDTH = 128;
const CONTEXT = 512;
const SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'];
/** Words that say nothing about a text. Their vectors are 0, as those of the special tokens are. */
const EMPTY = new Set(
  'a an and are as at by for from in is it its of on or that the to was what which who with'.split(' '),
);

/** Writes the model: a BERT with one layer that passes its input on. @param {string} file @param {Iterable<string>} texts */
export function writeWordVectors(file, texts) {
  const words = new Set([...texts].flatMap((text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []));
  const tokens = [...SPECIAL, ...[...words].map((word) => `\u2581${word}`)];
  const vectors = Float32Array.from(tokens.flatMap((word) => vectorOf(word.replace('\u2581', ''))));
  /** @type {any[]} */
  const tensors = [];
  const add = (
    /** @type {string} */ name,
    /** @type {number[]} */ dims,
    /** @type {Float32Array} */ values,
  ) => tensors.push({ name, type: 'f32', dims, chunks: () => [Buffer.from(values.buffer)] });
  const fill = (/** @type {string} */ name, /** @type {number[]} */ dims, value = 0) =>
    add(name, dims, new Float32Array(dims.reduce((product, size) => product * size, 1)).fill(value));
  const norm = (/** @type {string} */ name) => {
    fill(`${name}.weight`, [WIDTH], 1);
    fill(`${name}.bias`, [WIDTH]);
  };
  const linear = (/** @type {string} */ name) => {
    fill(`${name}.weight`, [WIDTH, WIDTH]);
    fill(`${name}.bias`, [WIDTH]);
  };
  add('token_embd.weight', [WIDTH, tokens.length], vectors);
  fill('position_embd.weight', [WIDTH, CONTEXT]);
  fill('token_types.weight', [WIDTH, 2]);
  norm('token_embd_norm');
  for (const part of ['attn_q', 'attn_k', 'attn_v', 'attn_output']) linear(`blk.0.${part}`);
  norm('blk.0.attn_output_norm');
  linear('blk.0.ffn_up');
  linear('blk.0.ffn_down');
  norm('blk.0.layer_output_norm');
  const { uint32, float32, bool, string, stringArray, int32Array } = meta;
  const keyValues = {
    'general.architecture': string('bert'),
    'general.name': string('word-vectors'),
    'bert.context_length': uint32(CONTEXT),
    'bert.embedding_length': uint32(WIDTH),
    'bert.block_count': uint32(1),
    'bert.feed_forward_length': uint32(WIDTH),
    'bert.attention.head_count': uint32(4),
    'bert.attention.layer_norm_epsilon': float32(1e-12),
    'bert.attention.causal': bool(false),
    'bert.pooling_type': uint32(1),
    'tokenizer.ggml.model': string('bert'),
    'tokenizer.ggml.pre': string('jina-v2-en'),
    'tokenizer.ggml.tokens': stringArray(tokens),
    'tokenizer.ggml.token_type': int32Array(tokens.map((_, i) => (i < SPECIAL.length ? 3 : 1))),
    'tokenizer.ggml.token_type_count': uint32(2),
    'tokenizer.ggml.padding_token_id': uint32(0),
    'tokenizer.ggml.unknown_token_id': uint32(1),
    'tokenizer.ggml.bos_token_id': uint32(2),
    'tokenizer.ggml.cls_token_id': uint32(2),
    'tokenizer.ggml.seperator_token_id': uint32(3),
    'tokenizer.ggml.mask_token_id': uint32(4),
  };
  writeGguf(file, new Map(Object.entries(keyValues)), tensors);
}

/** A direction for each word, the same every time. @param {string} word */
function vectorOf(word) {
  if (SPECIAL.includes(word) || EMPTY.has(word)) return new Array(WIDTH).fill(0);
  let state = 2166136261;
  for (const letter of word) state = Math.imul(state ^ letter.charCodeAt(0), 16777619);
  return Array.from({ length: WIDTH }, () => {
    state = Math.imul(state ^ (state >>> 15), 2246822519) + 374761393;
    return ((state >>> 8) & 0xffff) / 32768 - 1;
  });
}
