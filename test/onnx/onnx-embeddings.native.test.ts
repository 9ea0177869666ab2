/** Embeddings of an ONNX folder, beside those of llama.cpp on the same weights. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';

const root = path.resolve(import.meta.dirname, '../..');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-onnx-embeddings-'));
const at = (name: string): string => path.join(folder, name);
let runtime: Runtime;
beforeAll(async () => {
  for (const pooling of ['mean', 'cls', 'last']) {
    const words = ['--states', '--pooling', pooling, '--out', at(pooling), '--gguf', at(`${pooling}.gguf`)];
    const { status, stderr } = spawnSync(process.execPath, [
      path.join(root, 'scripts/make/make-onnx.mjs'),
      ...words,
    ]);
    expect(status, String(stderr)).toBe(0);
  }
  fs.cpSync(at('mean'), at('silent'), { recursive: true });
  fs.rmSync(path.join(at('silent'), '1_Pooling'), { recursive: true });
  fs.cpSync(at('mean'), at('weighted'), { recursive: true });
  fs.writeFileSync(path.join(at('weighted'), '1_Pooling/config.json'), '{"pooling_mode_max_tokens":true}');
  runtime = await createRuntime({
    gpu: false,
    threads: 1,
    models: {
      ...Object.fromEntries(fs.readdirSync(folder).map((name) => [name, at(name)])),
      told: { path: at('silent'), pooling: 'mean' },
      short: { path: at('mean'), contextSize: 8 },
    },
  });
}, 60_000);
afterAll(async () => {
  await runtime.close();
  fs.rmSync(folder, { recursive: true });
});

const INPUT = [
  'What is the capital of Peru?',
  'a',
  'Tell me a story about a bear and a fox. '.repeat(6),
  'b c',
];

function cosine(one: readonly number[], other: readonly number[]): number {
  return one.reduce((sum, value, i) => sum + value * other[i]!, 0); // of length 1
}

it.each([
  ['mean', 'mean.gguf'],
  ['cls', 'cls.gguf'],
  ['last', 'last.gguf'],
  ['told', 'mean.gguf'],
])('%s is what llama.cpp gives of %s', async (model, same) => {
  const [found, expected] = await Promise.all(
    [model, same].map((name) => runtime.createEmbeddings({ model: name, input: INPUT })),
  );
  expect(found!.usage).toEqual(expected!.usage);
  for (const [i, { embedding }] of found!.data.entries())
    expect(cosine(embedding, expected!.data[i]!.embedding)).toBeGreaterThan(0.9999);
});

it('texts of many requests do not change each other', async () => {
  const ask = (input: string) => runtime.createEmbeddings({ model: 'mean', input });
  const alone = [];
  for (const text of INPUT) alone.push((await ask(text)).data[0]!.embedding);
  const together = await Promise.all(INPUT.map(ask));
  for (const [i, { data }] of together.entries())
    expect(cosine(data[0]!.embedding, alone[i]!)).toBeCloseTo(1, 5);
});

it.each([
  [
    'a folder that says nothing',
    { model: 'silent', input: 'x' },
    'UNSUPPORTED',
    /gives last_hidden_state|logits/,
  ],
  [
    'another way of pooling',
    { model: 'weighted', input: 'x' },
    'UNSUPPORTED',
    /pools by pooling_mode_max_tokens/,
  ],
  [
    'a long text',
    { model: 'short', input: INPUT[2]! },
    'CONTEXT_OVERFLOW',
    /^input: expected at most 8 tokens/,
  ],
  [
    'too many dimensions',
    { model: 'mean', input: 'x', dimensions: 100_000 },
    'INVALID_REQUEST',
    /^dimensions/,
  ],
])('refuses %s', async (_, request, code, message) => {
  await expect(runtime.createEmbeddings(request)).rejects.toMatchObject({
    code,
    message: expect.stringMatching(message) as string,
  });
});

it('ends what waits when it is aborted or closed', async () => {
  const closing = await createRuntime({ gpu: false, threads: 1, model: at('mean') });
  await closing.createEmbeddings({ input: 'x' });
  const waiting = closing.createEmbeddings({ input: Array.from({ length: 200 }, () => INPUT[2]!) });
  const signal = AbortSignal.abort();
  await expect(closing.createEmbeddings({ input: 'x' }, { signal })).rejects.toMatchObject({
    code: 'ABORTED',
  });
  await Promise.all([closing.close(), expect(waiting).rejects.toMatchObject({ code: 'CLOSED' })]);
});
