/** A program in a bundle with the package inside, which says what to do; and with the package outside, as docs/packaging.md has it. */
import fs from 'node:fs';
import path from 'node:path';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packageFolder, runNode } from './program.ts';

const PROGRAM = `
import { createRuntime } from 'onpolicy';
try {
  const runtime = await createRuntime({ threads: 1, contextSize: 256 });
  const messages = [{ role: 'user', content: 'What is the capital of Peru?' }];
  console.log((await runtime.createCompletion({ messages, temperature: 0 })).choices[0].message.content);
  await runtime.close();
} catch (error) {
  console.log(error.code, error.message);
}`;
/** Optional peers, which an application has only where it uses them. */
const PEERS = [/^@huggingface\//, /^onnxruntime/, /^@opentelemetry\//];

let folder: string;
beforeAll(() => {
  folder = packageFolder('onpolicy-bundled-');
  fs.writeFileSync(path.join(folder, 'app.mjs'), PROGRAM);
});
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

it.each([
  [
    'inside',
    PEERS,
    /^NATIVE_UNAVAILABLE onpolicy was bundled, .*: mark the package as external\. docs\/packaging\.md/,
  ],
  ['outside', [/^onpolicy/], /^The capital of Peru is Lima\.\n$/],
])('%s', async (name, external, printed) => {
  const file = path.join(folder, `${name}.mjs`);
  const bundle = await rolldown({ input: path.join(folder, 'app.mjs'), external, platform: 'node' });
  await bundle.write({ file, format: 'esm', codeSplitting: false });
  await bundle.close();
  const { stdout } = await runNode([file], { cwd: folder, timeoutMs: 60_000 });
  expect(stdout).toMatch(printed);
});
