/** Headers of text models -> accepted, or refused by key or tensor. */
import { describe, expect, it } from 'vitest';
import { checkTextModel, readHeader } from '../../../src/engine/gguf/index.ts';
import { changed, editTensor, floats, MODEL_NAMES, type Parts, setKey, setToken, words } from './files.ts';

const check = async (file: string): Promise<void> => checkTextModel([await readHeader(file)]);
const u32 = (name: string, value: number): ((parts: Parts) => void) => setKey(name, 4, words(value));
const text = (name: string, value: string): ((parts: Parts) => void) => setKey(name, 8, Buffer.from(value));
const f32 = (name: string, value: number): ((parts: Parts) => void) => setKey(name, 6, floats(value));
const without =
  (name: string) =>
  (parts: Parts): void => {
    parts.keys = parts.keys.filter((key) => key.name !== name);
  };
const typed = (name: string, type: number, bytes: number): ((parts: Parts) => void) =>
  editTensor(name, (tensor) => {
    tensor.type = type;
    tensor.data = Buffer.alloc(bytes);
  });
const all =
  (...changes: ((parts: Parts) => void)[]) =>
  (parts: Parts): void => {
    for (const change of changes) change(parts);
  };

describe('a text model', () => {
  it.each(MODEL_NAMES)('is accepted: %s', async (name) => {
    await check(changed(name, () => {}));
  });

  it.each<[string, (parts: Parts) => void]>([
    ['no experts', all(u32('qwen3.expert_count', 0), u32('qwen3.expert_used_count', 0))],
    ['unspecified pooling', u32('qwen3.pooling_type', 2 ** 32 - 1)],
    ['a padding token outside of the vocabulary', u32('tokenizer.ggml.padding_token_id', 5000)],
    ['a key that its architecture has no use for', u32('qwen3.wkv.head_size', 0)],
    ['weights of 16 bits', typed('blk.0.attn_q.weight', 1, 64 * 64 * 2)],
    ['longrope', text('qwen3.rope.scaling.type', 'longrope')],
  ])('is accepted with %s', async (_, change) => {
    await check(changed('qwen3', change));
  });

  it.each<[string, string, (parts: Parts) => void, RegExp]>([
    [
      'qwen3',
      'without an architecture',
      without('general.architecture'),
      /general\.architecture: expected a value, got none/,
    ],
    [
      'qwen3',
      'of another architecture',
      text('general.architecture', 'zzz'),
      /general\.architecture: expected .*, got zzz/,
    ],
    [
      'qwen3',
      'without layers',
      u32('qwen3.block_count', 0),
      /qwen3\.block_count: expected .* 1 to 512, got 0/,
    ],
    ['qwen3', 'of 2^32 - 1 layers', u32('qwen3.block_count', 2 ** 32 - 1), /block_count: expected/],
    [
      'qwen3',
      'of a number of layers that is a text',
      text('qwen3.block_count', '2'),
      /block_count: expected a number of type u32/,
    ],
    [
      'qwen3',
      'of layers for drafts alone',
      u32('qwen3.nextn_predict_layers', 2),
      /nextn_predict_layers: expected .* at most 1/,
    ],
    ['qwen3', 'without a context', u32('qwen3.context_length', 0), /context_length/],
    ['qwen3', 'without heads', u32('qwen3.attention.head_count', 0), /head_count: expected at least 1/],
    [
      'qwen3',
      'of uneven heads',
      u32('qwen3.attention.head_count_kv', 3),
      /head_count_kv: expected a divisor of the 4 heads, got 3/,
    ],
    [
      'qwen3',
      'of heads for other layers',
      all(without('qwen3.attention.head_count_kv'), ({ keys }) => {
        keys.push({ name: 'qwen3.attention.head_count_kv', type: 9, of: 4, items: [words(2)] });
      }),
      /head_count_kv: expected 2 elements, got 1/,
    ],
    [
      'qwen3',
      'of an odd number of rotations',
      u32('qwen3.rope.dimension_count', 15),
      /rope\.dimension_count: expected an even number from 2 to 16, .*, got 15/,
    ],
    ['qwen3', 'of no rotations', u32('qwen3.rope.dimension_count', 0), /dimension_count: expected an even/],
    [
      'qwen3',
      'of more rotations than a head has',
      u32('qwen3.rope.dimension_count', 32),
      /dimension_count: expected an even/,
    ],
    [
      'qwen3',
      'of an unknown scaling',
      text('qwen3.rope.scaling.type', 'xyz'),
      /rope\.scaling\.type: expected one of none, linear, yarn, longrope, got xyz/,
    ],
    [
      'qwen3',
      'of a negative epsilon',
      f32('qwen3.attention.layer_norm_rms_epsilon', -1),
      /layer_norm_rms_epsilon: expected .* at least 0, got -1/,
    ],
    [
      'qwen3',
      'of an epsilon that is no number',
      f32('qwen3.attention.layer_norm_rms_epsilon', Number.NaN),
      /layer_norm_rms_epsilon.*got NaN/,
    ],
    [
      'qwen3',
      'of unknown pooling',
      u32('qwen3.pooling_type', 9),
      /pooling_type: expected a number from 0 to 4, got 9/,
    ],
    [
      'qwen3',
      'with more labels than its head has numbers',
      all(u32('qwen3.pooling_type', 4), (parts) => {
        const items = ['yes', 'no'].map((label) => Buffer.from(label));
        parts.keys.push({ name: 'qwen3.classifier.output_labels', type: 9, of: 8, items });
      }),
      /output_labels: expected at most one without cls\.output\.weight, got 2/,
    ],
    [
      'qwen3',
      'of vectors that nothing makes',
      u32('qwen3.embedding_length_out', 5000),
      /embedding_length_out: expected at most 64/,
    ],
    [
      'qwen3',
      'of experts without a count',
      u32('qwen3.expert_used_count', 2),
      /expert_used_count: expected 0 without experts, got 2/,
    ],
    [
      'qwen3moe',
      'of too many experts',
      u32('qwen3moe.expert_count', 2000),
      /expert_count: expected .* at most 1024/,
    ],
    [
      'qwen3moe',
      'of more experts used than there are',
      u32('qwen3moe.expert_used_count', 5),
      /from 1 to the 4 experts, got 5/,
    ],
    [
      'qwen3moe',
      'of groups that do not divide',
      u32('qwen3moe.expert_group_count', 3),
      /expert_group_count: expected a divisor of the 4/,
    ],
    [
      'qwen3moe',
      'of groups of which none is used',
      u32('qwen3moe.expert_group_count', 2),
      /expert_group_used_count/,
    ],
    [
      'qwen35',
      'without a product of a layer',
      (parts) => {
        parts.tensors = parts.tensors.filter(({ name }) => name !== 'blk.0.attn_qkv.weight');
      },
      /blk\.0\.attn_qkv\.weight: expected a tensor beside blk\.0\.ssm_beta\.weight, got none/,
    ],
    [
      'qwen35',
      'of an interval of 0',
      u32('qwen35.full_attention_interval', 0),
      /full_attention_interval: expected/,
    ],
    [
      'qwen35',
      'of sections larger than a head',
      all(without('qwen35.rope.dimension_sections'), ({ keys }) => {
        keys.push({ name: 'qwen35.rope.dimension_sections', type: 9, of: 4, items: Array(4).fill(words(5)) });
      }),
      /dimension_sections: expected four sizes of 16 together at most, .*, got 5, 5, 5, 5/,
    ],
    [
      'qwen35',
      'without sections',
      without('qwen35.rope.dimension_sections'),
      /dimension_sections: expected four sizes/,
    ],
    [
      'mamba2',
      'without a bias of its convolution',
      (parts) => {
        parts.tensors = parts.tensors.filter(({ name }) => name !== 'blk.1.ssm_conv1d.bias');
      },
      /blk\.1\.ssm_conv1d\.bias: expected a tensor beside blk\.1\.ssm_conv1d\.weight, got none/,
    ],
    [
      'qwen35',
      'of layers that predict ahead, alone',
      all(u32('qwen35.nextn_predict_layers', 1), (parts) => {
        parts.tensors = parts.tensors.filter(({ name }) => !name.startsWith('blk.0.'));
      }),
      /blk\.0: expected tensors of the first layer, got none/,
    ],
    ['mamba2', 'of no groups', u32('mamba2.ssm.group_count', 0), /ssm\.group_count/],
    [
      'qwen3',
      'of norms in 32-bit integers',
      typed('blk.0.attn_norm.weight', 26, 256),
      /blk\.0\.attn_norm\.weight: expected numbers of type f32, got i32/,
    ],
    [
      'qwen3',
      'of weights in integers',
      typed('blk.0.attn_q.weight', 26, 64 * 64 * 4),
      /attn_q\.weight: expected .* weights have, got i32/,
    ],
    [
      'mamba2',
      'of convolutions in 16 bits',
      typed('blk.0.ssm_conv1d.weight', 1, 4 * 192 * 2),
      /ssm_conv1d\.weight: expected numbers of type f32, got f16/,
    ],
    [
      'bert',
      'of token types in 16 bits',
      typed('token_types.weight', 1, 64 * 2 * 2),
      /token_types\.weight: expected numbers of type f32/,
    ],
    [
      'qwen3',
      'without a vocabulary',
      text('tokenizer.ggml.model', 'no_vocab'),
      /tokenizer\.ggml\.model: expected one of/,
    ],
    [
      'qwen3',
      'without tokens',
      without('tokenizer.ggml.tokens'),
      /tokenizer\.ggml\.tokens: expected a value/,
    ],
    [
      'llama',
      'of a token twice',
      setToken(261, 'a'),
      /tokenizer\.ggml\.tokens: expected each text once, got "a" as token 260 and 261/,
    ],
    ['llama', 'of a token twice up to a zero', setToken(261, 'a\0b'), /each text once/],
    [
      'bert',
      'without a separator',
      without('tokenizer.ggml.seperator_token_id'),
      /seperator_token_id: expected one of the 57 tokens.*got none/,
    ],
    [
      'llama/unigram',
      'that adds a token which it has not',
      setKey('tokenizer.ggml.add_bos_token', 7, Buffer.of(1)),
      /bos_token_id: expected one of/,
    ],
  ])('%s is refused %s', async (model, _, change, message) => {
    await expect(check(changed(model, change))).rejects.toMatchObject({
      code: 'MODEL_INVALID',
      message: expect.stringMatching(message),
    });
  });
});
