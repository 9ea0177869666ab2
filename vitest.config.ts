import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

// unit: no addon, no model. *.native.test.ts: the addon and the small models. *.mocked.test.ts: the same with a module replaced.
// e2e: whole programs. *.gpu.test.ts: a Vulkan device, as `npm run check:gpu` provides it.
// Test files of one worker share their modules, which saves a quarter of the time; only replaced modules need a worker of their own.
const canDecode = process.platform !== 'win32' || existsSync('native/decoder/build/Release/decoder.node');
const withoutDecoder = canDecode ? [] : ['test/media/**', 'test/backends/onnx-vision.native.test.ts'];
if (withoutDecoder.length > 0)
  process.stderr.write(
    'tests of pictures and sounds skipped: Windows has their decoder from `npm run prebuild`\n',
  );

export default defineConfig({
  test: {
    maxWorkers: availableParallelism(), // one less by default, which leaves a core idle while a test waits
    projects: [
      {
        test: {
          name: 'unit',
          isolate: false,
          testTimeout: 60_000,
          include: ['test/**/*.test.ts'],
          exclude: ['test/**/*.{native,mocked,gpu}.test.ts', 'test/e2e/**'],
        },
      },
      {
        test: {
          name: 'native',
          include: ['test/**/*.native.test.ts'],
          exclude: withoutDecoder,
          isolate: false,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          pool: 'forks',
          execArgv: ['--expose-gc'],
        },
      },
      { test: { name: 'mocked', include: ['test/**/*.mocked.test.ts'], testTimeout: 60_000, pool: 'forks' } },
      { test: { name: 'e2e', include: ['test/e2e/**/*.test.ts'], testTimeout: 180_000, pool: 'forks' } },
      {
        test: {
          name: 'gpu-software',
          include: ['test/**/*.gpu.test.ts'],
          testTimeout: 180_000,
          hookTimeout: 180_000,
          pool: 'forks',
          env: { GGML_VK_VISIBLE_DEVICES: '0' }, // without it a device in software is not listed
        },
      },
    ],
  },
});
