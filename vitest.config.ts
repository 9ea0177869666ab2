import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

// Quick, for `npm test`: a file takes 5 seconds at most (scripts/check/check-quick.mjs).
//   unit: no addon, no model. *.native.test.ts: the addon and the small models. *.mocked.test.ts: the same with a module replaced.
// The rest, for `npm run test:all`:
//   *.slow.test.ts: what takes longer, or needs the decoder of pictures and sounds. COUNTED: quick tests, all of their draws.
//   e2e: whole programs. *.gpu.test.ts: a Vulkan device, as `npm run check:gpu` provides it.
// Test files of one worker share their modules, which saves a quarter of the time; only replaced modules need a worker of their own.
const canDecode = existsSync('native/media/decoder/build/Release/decoder.node');
const withoutDecoder = canDecode
  ? []
  : ['test/models/media/*.slow.test.ts', 'test/onnx/onnx-vision.native.slow.test.ts'];
if (!canDecode)
  process.stderr.write(
    'tests of pictures and sounds skipped: their decoder is not built (npm run test:all; on Windows npm run prebuild)\n',
  );

/** Quick tests that draw a tenth there: test/counts.ts. */
const COUNTED = [
  'test/answer/fields/speculation.native.test.ts',
  'test/extremes/*.test.ts',
  'test/protocol/schema-check.test.ts',
  'test/structured/generated.native.test.ts',
];
const quick = { ONPOLICY_QUICK: '1' };

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
          exclude: ['test/**/*.{native,mocked,slow,gpu}.test.ts', 'test/e2e/**'],
          env: quick,
        },
      },
      {
        test: {
          name: 'native',
          include: ['test/**/*.native.test.ts'],
          isolate: false,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          pool: 'forks',
          execArgv: ['--expose-gc'],
          env: quick,
        },
      },
      {
        test: {
          name: 'mocked',
          include: ['test/**/*.mocked.test.ts'],
          testTimeout: 60_000,
          pool: 'forks',
          env: quick,
        },
      },
      {
        test: {
          name: 'slow',
          include: ['test/**/*.slow.test.ts', ...COUNTED],
          exclude: withoutDecoder,
          isolate: false,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          pool: 'forks',
          execArgv: ['--expose-gc'],
        },
      },
      { test: { name: 'e2e', include: ['test/e2e/**/*.test.ts'], testTimeout: 180_000, pool: 'forks' } },
      {
        test: {
          name: 'gpu-software',
          include: ['test/**/*.gpu.test.ts'],
          testTimeout: 600_000, // a device in software compiles its shaders on the processor
          hookTimeout: 600_000,
          pool: 'forks',
          env: { GGML_VK_VISIBLE_DEVICES: '0' }, // without it a device in software is not listed
        },
      },
    ],
  },
});
