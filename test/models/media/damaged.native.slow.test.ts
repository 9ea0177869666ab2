/** Faults that the check of projectors does not find are errors of the decoder: a graph that does not fit does not end the process. */
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { loadAddon, openDecoder } from '../../../src/engine/native/index.ts';
import { type GgufModel, loadGguf } from '../../../src/models/formats/index.ts';
import { decode, encode, type Parts, words, fileOf as write } from '../../engine/gguf/files.ts';
import { fileOf, openPair, pathOf } from './golden.ts';

const PROJECTOR = path.join(path.dirname(pathOf('gemma3')), 'mmproj.gguf');

/** The projector of a pair, changed. */
function changed(change: (parts: Parts) => void): string {
  const parts = decode(fs.readFileSync(PROJECTOR));
  change(parts);
  return write(encode(parts));
}

let model: GgufModel;
beforeAll(async () => {
  model = await loadGguf({ path: pathOf('gemma3'), gpu: false });
  await openDecoder();
}, 600_000);
afterAll(() => model.close());

it.each<[string, (parts: Parts) => void, string]>([
  ['a key of another type', ({ keys }) => Object.assign(keys.find(({ name }) => name === 'clip.use_gelu')!, { type: 4, items: [words(1)] }), 'MODEL_INVALID'],
  ['a matrix of another width', ({ tensors }) => Object.assign(tensors.find(({ name }) => name === 'v.blk.0.attn_q.weight')!, { dims: [32n, 64n], data: Buffer.alloc(8192) }), 'BACKEND_FAILED'],
  ['a bias of another size', ({ tensors }) => Object.assign(tensors.find(({ name }) => name === 'v.blk.0.attn_q.bias')!, { dims: [5n], data: Buffer.alloc(20) }), 'BACKEND_FAILED'],
])('%s', async (_, change, code) => {
  const use = async (): Promise<unknown> => {
    const projector = (await model.openVision({ projector: changed(change), gpu: false, threads: 1 }))!;
    try {
      const { handle } = await loadAddon().decodeMedia({
        kind: 'image',
        bytes: fileOf('square.png'),
        pixels: 2 ** 20,
        seconds: 1,
        timeMs: 5000,
        sampleRate: 16_000,
      });
      const chunks = await projector.tokenize([handle], false);
      const picture = chunks.find(({ tokens }) => tokens === undefined) as { handle: typeof handle };
      return await projector.encode(picture.handle, new Int32Array(1));
    } finally {
      projector.close();
    }
  };
  await expect(use()).rejects.toMatchObject({ code });
}); // biome-ignore format: a case is one row

it('is refused before its model is loaded, by the option and the key', async () => {
  const mmproj = changed(({ keys }) => {
    keys.find(({ name }) => name === 'clip.vision.block_count')!.items = [words(0)];
  });
  const runtime = await openPair('gemma3', { model: { path: pathOf('gemma3'), mmproj } });
  const messages = [{ role: 'user' as const, content: 'a' }];
  await expect(runtime.createCompletion({ messages })).rejects.toMatchObject({
    code: 'MODEL_INVALID',
    param: 'model.mmproj',
    message: `model.mmproj: ${mmproj}: clip.vision.block_count: expected at least 1, got 0`,
  });
  await runtime.close();
});
