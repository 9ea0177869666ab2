/** A kind of GPU that cannot be used -> what is missing, and the line that installs it. */
import { expect, it } from 'vitest';
import { openLibrariesOf } from '../../../src/engine/native/libraries.ts';

const KINDS = ['linux-x64', 'win32-x64'].includes(`${process.platform}-${process.arch}`)
  ? ['cuda', 'vulkan']
  : [];

it.each(KINDS)('%s', async (gpu) => {
  const addon = { canOpenSystemLibrary: () => false };
  await expect(openLibrariesOf(addon as never, gpu as never)).rejects.toMatchObject({
    code: 'NATIVE_UNAVAILABLE',
    param: 'gpu',
    message: expect.stringMatching(
      new RegExp(
        `missing .* \\(the ${gpu} driver\\), the package .*-${gpu} .*Install it: npm install @node-llama-cpp/.*-${gpu}@`,
      ),
    ),
  });
});
