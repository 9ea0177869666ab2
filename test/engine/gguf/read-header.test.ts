/** Files, whole and damaged -> what their headers say, or the error that says what is wrong. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { readHeader } from '../../../src/engine/gguf/index.ts';
import {
  changed,
  decode,
  editTensor,
  encode,
  fileOf,
  type Parts,
  setKey,
  tinyModel,
  words,
} from './files.ts';

const ARRAY = 9;

describe('the header of a file', () => {
  it('has its values and tensors', async () => {
    const file = changed('qwen3', (parts) => {
      parts.keys.push({ name: 'list', type: ARRAY, of: 5, items: [words(2 ** 32 - 1), words(7)] });
    });
    const header = await readHeader(file);
    expect(header.architecture).toBe('qwen3');
    expect(header.number('qwen3.block_count')).toBe(2);
    expect(header.number('qwen3.absent')).toBeUndefined();
    expect(Array.from(header.array('list', 'i32')!.numbers)).toEqual([-1, 7]);
    const tokens = [...header.array('tokenizer.ggml.tokens', 'string')!.texts()];
    expect(tokens.slice(65, 68).map(String)).toEqual(['A', 'B', 'C']);
    const tensor = header.tensor('blk.1.attn_k.weight', { types: ['f32'], shape: [64, 32] })!;
    const bytes = fs.readFileSync(file).subarray(tensor.offset, tensor.offset + tensor.bytes);
    const source = decode(tinyModel('qwen3')).tensors.find(({ name }) => name === 'blk.1.attn_k.weight')!;
    expect(bytes.equals(source.data)).toBe(true);
  });

  it('is read beyond the first MiB', async () => {
    const file = changed('qwen3', (parts) => {
      setKey('long', 8, Buffer.alloc(3 * 2 ** 20, 'x'))(parts);
      setKey('last', 4, words(5))(parts);
    });
    expect((await readHeader(file)).number('last')).toBe(5);
  });

  it('says what a value must be', async () => {
    const header = await readHeader(changed('qwen3', setKey('a', 4, words(9))));
    expect(() => header.number('a', { max: 8 })).toThrow(
      /model\.gguf: a: expected a number of at most 8, got 9/,
    );
    expect(() => header.number('a', { type: 'f32' })).toThrow(
      /a: expected a number of type f32, got 9 of type u32/,
    );
    expect(() => header.text('a')).toThrow(/a: expected a text, got 9 of type u32/);
    expect(() => header.array('a', 'u32')).toThrow(/a: expected an array of u32/);
    expect(() => header.tensor('output.weight', { shape: [64, 8] })).toThrow(
      /the tensor output\.weight: expected the shape 64 x 8, got 64 x 264/,
    );
  });
});

const edited = (edit: (parts: Parts) => void): string => changed('qwen3', edit);
const whole = tinyModel('qwen3');

describe('a damaged file', () => {
  it.each<[string, () => string, RegExp]>([
    ['no GGUF', () => fileOf(Buffer.from('GGML....')), /is not a GGUF file/],
    ['an empty file', () => fileOf(Buffer.alloc(0)), /is not a GGUF file/],
    ['a cut header', () => fileOf(whole.subarray(0, 300)), /damaged or truncated/],
    ['cut weights', () => fileOf(whole.subarray(0, -40)), /is truncated: it needs \d+ bytes and has \d+/],
    ['a folder', () => path.dirname(fileOf(whole)), /is not a file/],
    ['version 1', () => edited((parts) => Object.assign(parts, { version: 1 })), /version 2 or 3, got 1/],
    [
      '2^62 keys',
      () => edited((parts) => Object.assign(parts, { counts: { keys: 2n ** 62n } })),
      /4096 keys/,
    ],
    [
      '2^62 tensors',
      () => edited((parts) => Object.assign(parts, { counts: { tensors: 2n ** 62n } })),
      /tensors at most/,
    ],
    [
      '2^40 elements',
      () => edited(({ keys }) => Object.assign(keys[15]!, { type: 9, of: 4, count: 2n ** 40n })),
      /damaged/,
    ],
    ['a key twice', () => edited(({ keys }) => keys.push(keys[0]!)), /general\.architecture occurs twice/],
    [
      'a tensor twice',
      () => edited(({ tensors }) => tensors.push(tensors[0]!)),
      /token_embd\.weight occurs twice/,
    ],
    [
      'a value of no type',
      () => edited(({ keys }) => Object.assign(keys[1]!, { type: 13 })),
      /no known type/,
    ],
    [
      'an array of arrays',
      () => edited(({ keys }) => Object.assign(keys[1]!, { type: 9, of: 9 })),
      /no known type/,
    ],
    ['alignment 0', () => edited(setKey('general.alignment', 4, words(0))), /general\.alignment: expected/],
    ['alignment 48', () => edited(setKey('general.alignment', 4, words(48))), /a power of 2, got 48/],
    [
      'an empty tensor',
      () => edited(editTensor('output.weight', (t) => Object.assign(t, { dims: [64n, 0n] }))),
      /is empty/,
    ],
    [
      'a tensor of 2^63 numbers',
      () => edited(editTensor('output.weight', (t) => Object.assign(t, { dims: [2n ** 62n, 2n] }))),
      /has the shape/,
    ],
    [
      'an unknown type',
      () => edited(editTensor('output.weight', (t) => Object.assign(t, { type: 4 }))),
      /unknown type 4/,
    ],
    [
      'half a block',
      () => edited(editTensor('output.weight', (t) => Object.assign(t, { dims: [33n], type: 8 }))),
      /no whole blocks of q8_0/,
    ],
    [
      'an offset',
      () => edited(editTensor('output.weight', (t) => Object.assign(t, { offset: 64n }))),
      /begins at 64, expected/,
    ],
    [
      'a long name',
      () => edited(editTensor('output.weight', (t) => Object.assign(t, { name: 'x'.repeat(64) }))),
      /too long a name/,
    ],
  ])('is an error: %s', async (_, make, message) => {
    await expect(readHeader(make())).rejects.toMatchObject({
      code: 'MODEL_INVALID',
      message: expect.stringMatching(message),
    });
  });

  it('is an error where its weights do not begin at multiples of 32 bytes', async () => {
    const parts = decode(whole);
    parts.alignment = 1;
    setKey('general.alignment', 4, words(1))(parts);
    parts.keys.push({ name: 'odd', type: 0, items: [Buffer.of(1)] });
    await expect(readHeader(fileOf(encode(parts)))).rejects.toThrow(/to begin at a multiple of 32 bytes/);
  });

  it('is another error where there is none', async () => {
    await expect(readHeader('/no/such/file.gguf')).rejects.toMatchObject({ code: 'MODEL_NOT_FOUND' });
  });
});
