/** Files of a model that is split -> their headers in order, or which of them is not what it should be. */
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { readHeaders } from '../../../src/models/formats/index.ts';
import { decode, encode, fileOf, setKey, tinyModel } from '../../engine/gguf/files.ts';

const U16 = 2;
const u16 = (value: number): Buffer => Buffer.from(Uint16Array.of(value).buffer);

/** A model in so many files; `no`: what each says of its place. */
function split(name: string, count: number, no = (part: number): number => part): string {
  const whole = decode(tinyModel('qwen3'));
  const files = Array.from({ length: count }, (_, part) => {
    const tensors = whole.tensors.filter((_, i) => i % count === part);
    const parts = { ...whole, tensors, keys: part === 0 ? [...whole.keys] : [] };
    setKey('split.count', U16, u16(count))(parts);
    setKey('split.no', U16, u16(no(part)))(parts);
    const ending = `-0000${part + 1}-of-0000${count}.gguf`;
    return fileOf(encode(parts), `${name}${ending}`);
  });
  return files[0]!;
}

describe('the headers of a split model', () => {
  it('are those of all its files', async () => {
    const headers = await readHeaders(split('whole', 3));
    expect(headers.map(({ file }) => path.basename(file))).toEqual(
      [1, 2, 3].map((part) => `whole-0000${part}-of-00003.gguf`),
    );
    const tensors = headers.flatMap((header) => [...header.tensors.keys()]);
    expect(tensors.sort()).toEqual(
      decode(tinyModel('qwen3'))
        .tensors.map(({ name }) => name)
        .sort(),
    );
  });

  it('are as many as the file says, whatever its name', async () => {
    const file = fileOf(tinyModel('qwen3'), 'x-00001-of-00000.gguf');
    expect(await readHeaders(file)).toHaveLength(1);
  });

  it.each<[string, () => string, string, RegExp]>([
    [
      'of which one is missing',
      () => split('gone', 2).replace('00002', '00003'),
      'MODEL_NOT_FOUND',
      /there is no file/,
    ],
    [
      'whose order is another',
      () => split('order', 2, (part) => 2 * part),
      'MODEL_INVALID',
      /split\.no: expected 1, got 2/,
    ],
    [
      'that does not begin with the first',
      () => split('second', 2).replace('00001', '00002'),
      'MODEL_INVALID',
      /the first of the files/,
    ],
    [
      'whose name says another number',
      () => {
        const parts = decode(tinyModel('qwen3'));
        setKey('split.count', U16, u16(2))(parts);
        setKey('split.no', U16, u16(0))(parts);
        return fileOf(encode(parts), 'name-00001-of-00003.gguf');
      },
      'MODEL_INVALID',
      /split\.count: expected a file that is named \*-00001-of-00002\.gguf/,
    ],
  ])('are refused: a model %s', async (_, make, code, message) => {
    await expect(readHeaders(make())).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
  });
});
