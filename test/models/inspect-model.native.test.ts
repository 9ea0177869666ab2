/** Headers that lie about sizes -> a bounded answer or an error, at once. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inspectModel } from '../../src/runtime/inspect-model.ts';
import { writeTinyModel } from '../rl/tiny-model.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-inspect-'));
const file = path.join(folder, 'model.gguf');
let plain: Buffer;

beforeAll(async () => {
  await writeTinyModel(file, { architecture: 'llama', type: 'q8_0' });
  plain = fs.readFileSync(file);
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

describe('inspectModel', () => {
  it.each([
    ['llama', true, null],
    ['stablelm', false, /^training supports the architectures llama, .*; this model's is "stablelm"$/],
  ] as const)('says whether a model of %s can be trained', async (architecture, isSupported, reason) => {
    const other = path.join(folder, `${architecture}.gguf`);
    await writeTinyModel(other, { architecture: architecture as 'llama', type: 'q8_0' });
    const { training } = await inspectModel(other, { gpu: false });
    expect(training).toEqual({
      isSupported,
      reason: reason && expect.stringMatching(reason),
      bytes: isSupported ? expect.any(Number) : null,
    });
  });

  it.each([
    ['block_count', 0],
    ['block_count', 10 ** 6],
    ['block_count', 10 ** 7],
    ['block_count', 2 ** 32 - 1],
    ['embedding_length', 2 ** 32 - 1],
    ['context_length', 2 ** 32 - 1],
    ['attention.head_count_kv', 2 ** 32 - 1],
  ])('is refused or bounded for a header with %s %i', async (key, value) => {
    const bytes = Buffer.from(plain);
    const name = `llama.${key}`;
    bytes.writeUInt32LE(value, bytes.indexOf(name) + name.length + 4); // behind the type
    fs.writeFileSync(file, bytes);
    const found = await inspectModel(file, { gpu: false }).catch((error: { code?: string }) => error.code);
    if (typeof found === 'object') {
      expect(found.layers).toBeLessThanOrEqual(4096);
      for (const size of [...Object.values(found.memory), found.placement.deviceBytes])
        expect(size).toBeGreaterThanOrEqual(0);
    } else expect(['MODEL_INVALID', 'UNSUPPORTED']).toContain(found);
  });
});
