/** Faults of an ONNX model are reported by name before the first token; closing a model frees its memory. */
import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requireGguf } from '../../src/models/running-model.ts';
import { readGraphFile } from '../../src/onnx/graph/graph-file.ts';
import { loadTransformers } from '../../src/onnx/packages.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import {
  ask,
  closeAll,
  modelOf,
  openRuntime,
  temporaryFolder,
  whyNoOnnx,
} from '../models/formats/engines.ts';

afterAll(closeAll);

const PARIS = 'What is the capital of France?';

describe.skipIf(whyNoOnnx() !== null)('an ONNX model', () => {
  let good: string;
  let copies = 0;
  beforeAll(() => {
    good = modelOf('ONNX, padded on the left');
  });

  /** A copy of the folder, changed. */
  function copy(change: (folder: string) => void): string {
    copies += 1;
    const folder = path.join(temporaryFolder(), `copy-${copies}`);
    fs.cpSync(good, folder, { recursive: true });
    change(folder);
    return folder;
  }

  function editJson(folder: string, name: string, change: Record<string, unknown>): void {
    const file = path.join(folder, name);
    const value = JSON.parse(fs.readFileSync(file, 'utf8')) as object;
    fs.writeFileSync(file, JSON.stringify({ ...value, ...change }));
  }

  async function failure(model: string, options: Parameters<typeof openRuntime>[1] = {}): Promise<unknown> {
    const runtime = await openRuntime(model, options);
    return await runtime.createCompletion(ask(PARIS)).catch((error: unknown) => error);
  }

  it.each([
    ['config.json', 'MODEL_INVALID', 'config.json'],
    ['tokenizer.json', 'MODEL_INVALID', 'tokenizer.json'],
    ['tokenizer_config.json', 'MODEL_INVALID', 'tokenizer_config.json'],
    ['onnx/model.onnx', 'MODEL_INVALID', 'onnx/model*.onnx'],
  ])('without %s fails with %s and names it', async (file, code, named) => {
    const folder = copy((made) => fs.rmSync(path.join(made, file)));
    expect(await failure(folder)).toMatchObject({ code, message: expect.stringContaining(named) });
  });

  it.each([
    ['config.json', 'not JSON', 'config.json'],
    ['tokenizer.json', '[1, 2', 'tokenizer.json'],
    ['tokenizer.json', '{"model": {"type": "none of these"}}', 'the tokenizer'],
    ['onnx/model.onnx', 'This is no graph at all.', 'model.onnx'],
    ['onnx/model.onnx', '', 'model.onnx'],
  ])('with a damaged %s (%s) fails and names it', async (file, content, named) => {
    const folder = copy((made) => fs.writeFileSync(path.join(made, file), content));
    expect(await failure(folder)).toMatchObject({
      code: 'MODEL_INVALID',
      message: expect.stringContaining(named),
    });
  });

  it.each([0.1, 0.5, 0.99])('that ends early, at %f of its bytes, fails', async (share) => {
    const folder = copy((made) => {
      const file = path.join(made, 'onnx/model.onnx');
      fs.truncateSync(file, Math.floor(fs.statSync(file).size * share));
    });
    expect(await failure(folder)).toMatchObject({ code: 'MODEL_INVALID' });
  });

  it('without the file of its weights fails', async () => {
    const outside = modelOf('ONNX, fused attention, weights beside the graph');
    const folder = path.join(temporaryFolder(), 'no-weights');
    fs.cpSync(outside, folder, { recursive: true });
    fs.rmSync(path.join(folder, 'onnx/model.onnx_data'));
    expect(await failure(folder)).toMatchObject({
      code: 'MODEL_INVALID',
      message: expect.stringContaining('model.onnx_data'),
    });
  });

  it('of operators that are too new fails and says so', async () => {
    expect(readGraphFile(path.join(good, 'onnx/model.onnx'))).toMatchObject({ opset: 17 });
    const folder = copy((made) => {
      const file = path.join(made, 'onnx/model.onnx');
      const bytes = fs.readFileSync(file);
      const at = bytes.lastIndexOf(Buffer.from([0x10, 17])); // the version of the standard operators
      bytes[at + 1] = 99;
      fs.writeFileSync(file, bytes);
    });
    expect(readGraphFile(path.join(folder, 'onnx/model.onnx'))).toMatchObject({ opset: 99 });
    expect(await failure(folder)).toMatchObject({
      code: 'MODEL_INVALID',
      message: expect.stringMatching(/opset 99/i),
    });
  });

  it.each([
    [
      'a pipeline of diffusion',
      (folder: string) => fs.writeFileSync(path.join(folder, 'model_index.json'), '{}'),
    ],
    [
      'an encoder with a decoder',
      (folder: string) =>
        editJson(folder, 'config.json', {
          is_encoder_decoder: true,
          architectures: ['T5ForConditionalGeneration'],
        }),
    ],
    [
      'a model that reads images',
      (folder: string) => fs.writeFileSync(path.join(folder, 'onnx/vision_encoder.onnx'), ''),
    ],
  ])('that is %s is not served', async (_, change) => {
    expect(await failure(copy(change))).toMatchObject({ code: 'UNSUPPORTED', param: 'model' });
  });

  it('is chosen by its folder or by one of its graphs, and says which it is', async () => {
    const byGraph = await openRuntime(path.join(good, 'onnx/model.onnx'));
    const answer = await byGraph.createCompletion(ask(PARIS));
    expect(answer.system_fingerprint).toMatch(/^onpolicy-onnx-.*-model$/);
    expect(await failure(path.join(good, 'onnx/model_q4.onnx'))).toMatchObject({ code: 'MODEL_NOT_FOUND' });
  });

  it('takes the sampling defaults and the ends of generation_config.json', async () => {
    const folder = copy((made) =>
      editJson(made, 'generation_config.json', {
        do_sample: true,
        temperature: 0.01,
        top_k: 1,
        eos_token_id: 16,
      }),
    );
    const runtime = await openRuntime(folder);
    const { temperature: _, ...request } = ask(PARIS, { seed: 3 });
    const first = await runtime.createCompletion(request);
    expect(first.choices[0]!.message.content).toBe('The capital of France is Paris.');
    const digits = await runtime.createCompletion(ask('Count from 1 to 9.'));
    expect(digits.choices[0]!.finish_reason).toBe('stop');
  });

  it('cannot run on a processor that onnxruntime has no provider for', async () => {
    expect(await failure(good, { gpu: 'metal' })).toMatchObject({
      code: 'NATIVE_UNAVAILABLE',
      message: expect.stringContaining('coreml'),
    });
  });

  it('takes no images', async () => {
    const runtime = await openRuntime(good);
    const content = [
      { type: 'text', text: PARIS },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
    ];
    const asked = runtime.createCompletion({ messages: [{ role: 'user', content }] } as never);
    await expect(asked).rejects.toMatchObject({ message: expect.stringContaining('image') });
  });

  it('is not trained: the error names the GGUF route', async () => {
    const served = { path: good, loaded: {} } as never;
    expect(() => requireGguf(served, 'model_id')).toThrow(/model_id: .*GGUF file/);
    const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-home-'));
    const runtime = await openRuntime(good, { home } as never);
    const model = await runtime.models.create({ name: 'mine', base_model: good } as never);
    const choice = { role: 'assistant', content: 'Paris.' };
    const trajectory = { messages_and_choices: [{ role: 'user', content: PARIS }, choice], reward: 1 };
    const job = runtime.train({
      model_id: model.id,
      trajectory_groups: [{ trajectories: [trajectory] }],
    } as never);
    await expect(job).rejects.toMatchObject({ code: 'UNSUPPORTED', param: 'model_id' });
    await runtime.close();
    fs.rmSync(home, { recursive: true, force: true });
  });

  it('does not grow over 2,000 requests, and closing frees its thread', async () => {
    const runtime: Runtime = await createRuntime({ model: good, gpu: false, threads: 1, maxSequences: 16 });
    const round = async (requests: number): Promise<number> => {
      for (let i = 0; i < requests; i += 40)
        await Promise.all(
          Array.from({ length: 40 }, (_, j) =>
            runtime.createCompletion(ask(`${PARIS} ${i + j}`, { max_tokens: 1 + (j % 9) })),
          ),
        );
      globalThis.gc!();
      const { rss, heapTotal, heapUsed } = process.memoryUsage(); // V8 keeps free pages of its heap, more on Node 24
      return (rss - heapTotal + heapUsed) / 2 ** 20;
    };
    await round(1000);
    const before = await round(200);
    await round(1200);
    const after = Math.min(await round(400), await round(400), await round(400)); // the allocator gives pages back when it likes
    await runtime.close();
    expect(after - before).toBeLessThan(40); // MiB
    await expect(runtime.createCompletion(ask(PARIS))).rejects.toMatchObject({ code: 'CLOSED' });
  });

  describe('from a hub', () => {
    let server: http.Server;
    const asked: string[] = [];
    beforeAll(async () => {
      server = http.createServer((request, response) => {
        asked.push(`${request.method} ${request.url}`);
        const file = path.join(good, request.url!.replace('/someone/tiny-onnx/resolve/main/', ''));
        if (!request.url!.startsWith('/someone/tiny-onnx/') || !fs.existsSync(file)) {
          response.writeHead(404).end();
          return;
        }
        fs.createReadStream(file).pipe(response);
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const { env } = await loadTransformers();
      env.remoteHost = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
      env.cacheDir = path.join(temporaryFolder(), 'cache');
    });
    afterAll(() => server.close());

    it('is downloaded once, into the cache of transformers.js', async () => {
      const runtime = await openRuntime('hf:someone/tiny-onnx');
      const answer = await runtime.createCompletion(ask(PARIS));
      expect(answer.choices[0]!.message.content).toBe('The capital of France is Paris.');
      const count = asked.filter((one) => /^GET .*model\.onnx$/.test(one)).length;
      expect(count).toBe(1);
      const again = await openRuntime('hf:someone/tiny-onnx/onnx/model.onnx');
      expect((await again.createCompletion(ask(PARIS))).choices[0]!.message.content).toContain('Paris');
      expect(asked.filter((one) => /^GET .*model\.onnx$/.test(one))).toHaveLength(1);
    });

    it('fails with NETWORK_FAILED when it is not there, or nobody answers', async () => {
      const unknown = await failure('hf:someone/other-onnx');
      expect(unknown).toMatchObject({ code: 'NETWORK_FAILED', param: 'model' });
      const { env } = await loadTransformers();
      env.remoteHost = 'http://127.0.0.1:9/';
      expect(await failure('hf:someone/third-onnx')).toMatchObject({ code: 'NETWORK_FAILED' });
      const cached = await openRuntime('hf:someone/tiny-onnx');
      expect((await cached.createCompletion(ask(PARIS))).choices[0]!.message.content).toContain('Paris');
    });
  });
});
