/** Electron, whose allocator takes no large pieces: the engine's buffers are cut, and weights are packed as elsewhere. */
import { fileURLToPath } from 'node:url';
import { expect, it, vi } from 'vitest';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { testing } from '../addon/testing-addon.ts';

vi.hoisted(() =>
  Object.defineProperty(process, 'versions', { value: { ...process.versions, electron: '45.0.0' } }),
);
const MODEL = fileURLToPath(new URL('../../models/onpolicy-tiny.gguf', import.meta.url));

it('has the kernels of this processor', async () => {
  await using runtime = await createRuntime({ model: MODEL, gpu: false });
  const { choices } = await runtime.createCompletion({
    messages: [{ role: 'user', content: 'What is the capital of Peru?' }],
    temperature: 0,
  });
  expect(choices[0]!.message.content).toContain('Lima');
  expect(runtime.stats().kernels[0]!.kernels).toBe(testing.matmulKernels()[0] ?? 'plain');
});
