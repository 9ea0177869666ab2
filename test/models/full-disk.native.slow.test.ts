/** A full disk under everything that writes models, adapters, checkpoints and prompts: one code, and nothing half-written. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { createRuntime, type Runtime } from '../../src/index.ts';
import { openFullTrainer } from '../../src/rl/full-trainer.ts';
import { openTrainer } from '../../src/rl/trainer.ts';
import { smallDisk } from '../fakes/small-disk.ts';
import { randomAdapter } from '../rl/random-adapter.ts';
import { normals, writeTinyModel } from '../rl/tiny-model.ts';

const SIZES = { width: 256, hidden: 256, heads: 4, kvHeads: 2, headSize: 64, layers: 1, vocabularySize: 256 };
const FULL = { code: 'STORE_FAILED', message: expect.stringMatching(/disk (is )?full/) };

const disk = smallDisk(4096);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-full-'));
const model = path.join(folder, 'model.gguf');
const adapter = path.join(folder, 'adapter');
const on = (name: string): string => path.join(disk.folder!, name);
const leave = (bytes: number): void => {
  disk.fill();
  fs.truncateSync(on('filler'), fs.statSync(on('filler')).size - bytes);
};
let runtime: Runtime;

describe.skipIf(disk.folder === null)('a full disk', () => {
  beforeAll(async () => {
    await writeTinyModel(model, { ...SIZES, architecture: 'qwen3', type: 'f32' });
    await using trainer = await openTrainer({ model, rank: 16, gpu: false, threads: 1 });
    await trainer.loadAdapter(randomAdapter(trainer, normals(3)));
    await trainer.save(adapter);
    runtime = await createRuntime({
      home: on('home'),
      kvTransferFolder: on('kv'),
      models: { base: { path: model, chatTemplate: '{% for m in messages %}{{ m.content }}{% endfor %}' } },
      gpu: false,
      threads: 1,
    });
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    fs.rmSync(on('filler'), { force: true });
  });
  afterAll(async () => {
    await runtime?.close();
    disk.unmount();
    fs.rmSync(folder, { recursive: true });
  });

  it.each<[string, number, object, string]>([
    ['a GGUF file, in its header', 0, {}, 'x.gguf'],
    ['a GGUF file, in its weights', 200_000, {}, 'x.gguf'],
    ['a quantized file, in the merged one', 200_000, { type: 'q8_0' }, 'x.gguf'],
    ['a quantized file, behind the merged one', 2_300_000, { type: 'q8_0' }, 'x.gguf'],
    ['a PEFT folder, at once', 0, { format: 'peft', adapters: [{ file: adapter }] }, 'x'],
    ['a PEFT folder', 100_000, { format: 'peft', adapters: [{ file: adapter }] }, 'x'],
    ['a safetensors file, in its header', 0, { format: 'safetensors' }, 'x.safetensors'],
    ['a safetensors file', 200_000, { format: 'safetensors' }, 'x.safetensors'],
    ['a safetensors folder', 0, { format: 'safetensors' }, 'x'],
  ])('under an export of %s', async (_, left, fields, to) => {
    leave(left);
    await expect(runtime.models.export({ model, to: on(to), ...fields } as never)).rejects.toMatchObject(
      FULL,
    );
    expect(fs.readdirSync(disk.folder!)).toEqual(expect.not.arrayContaining([expect.stringMatching(/^x/)]));
  });

  it.each([0, 100_000])('under the files of a trainer, after %i bytes', async (left) => {
    leave(left);
    await using trainer = await openTrainer({ model, gpu: false, threads: 1 });
    await expect(trainer.save(on('saved'))).rejects.toMatchObject(FULL);
    await using full = await openFullTrainer({ model, threads: 1 });
    await expect(full.save(on('saved.gguf'))).rejects.toMatchObject(FULL);
    fs.rmSync(on('saved'), { recursive: true, force: true });
  });

  it.each([0, 100_000])('under an adapter that is converted, after %i bytes', async (left) => {
    vi.stubEnv('TMPDIR', disk.folder!);
    leave(left);
    await expect(runtime.adapters.load({ name: 'a', path: adapter, base: model })).rejects.toMatchObject({
      ...FULL,
      param: 'path',
    });
    expect(runtime.adapters.list()).toEqual([]);
  });

  it('under a prompt that is handed over', async () => {
    const request = {
      messages: [{ role: 'user', content: 'Hello' }],
      kv_transfer_params: { do_remote_decode: true },
    };
    leave(0);
    await expect(runtime.createCompletion(request)).rejects.toMatchObject(FULL);
  });

  it('under a training job, which leaves the model as it was', async () => {
    const { id } = await runtime.models.create({ base_model: 'base' });
    leave(200_000);
    const messages = [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'b' },
    ];
    const job = await runtime.sft({ model_id: id, data: [{ messages }] } as never);
    await expect(job.done).rejects.toMatchObject(FULL);
    expect(await runtime.trainingJobs.retrieve(job.id)).toMatchObject({
      status: 'failed',
      error: { code: 'STORE_FAILED' },
    });
    expect((await runtime.models.retrieve(id)).step).toBe(0);
    expect(fs.readdirSync(path.join(on('home'), 'models', id, 'checkpoints'))).toEqual([]);
  });
});
