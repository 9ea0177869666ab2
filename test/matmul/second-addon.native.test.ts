/** Two copies of the addon in one process: the second finds the engine changed, and leaves it as it is. */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { type Addon, loadAddon } from '../../src/engine/native/index.ts';
import { openLibrariesOf } from '../../src/engine/native/libraries.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { testing } from '../addon/testing-addon.ts';

const BUILT = fileURLToPath(new URL('../../native/build/Release/onpolicy.node', import.meta.url));
const MODEL = fileURLToPath(new URL('../../models/onpolicy-tiny.gguf', import.meta.url));
const [BEST] = testing.matmulKernels();

it.skipIf(!BEST)('stays plain and says why, while the first one goes on', async () => {
  const ask = {
    messages: [{ role: 'user', content: 'What is the capital of Peru?' }],
    temperature: 0,
  } as const;
  await using runtime = await createRuntime({ model: MODEL, gpu: false });
  const { choices: before } = await runtime.createCompletion(ask);

  const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-second-')), 'second.node');
  fs.copyFileSync(BUILT, file);
  const second = createRequire(import.meta.url)(file) as Addon;
  expect(second).not.toBe(loadAddon());
  await openLibrariesOf(second, false);
  const lines: string[] = [];
  const stop = second.setLog((_level, text) => lines.push(text));
  const { kernels } = await second.loadModel({
    path: MODEL,
    useGpu: false,
    packs: true,
    cancelled: new Int32Array(1),
  });
  await expect
    .poll(() => lines.join(''))
    .toMatch(/unexpected buffer type ONPOLICY_PRODUCTS; the engine computes all matmuls/);
  stop();

  const { choices: after } = await runtime.createCompletion(ask);
  expect([kernels, runtime.stats().kernels[0]!.kernels]).toEqual(['plain', BEST]);
  expect(after[0]!.message).toEqual(before[0]!.message);
});
