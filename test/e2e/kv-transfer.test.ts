/** One process computes a prompt, another one continues it. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runProgram } from './program.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-hand-over-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** Asks the embedded model and prints the answer with how many prompt tokens were computed for it. */
function program(fields: object): string {
  return `
import { createRuntime } from 'onpolicy';
const runtime = await createRuntime({ gpu: false, threads: 1, kvTransferFolder: ${JSON.stringify(folder)} });
const answer = await runtime.createCompletion({
  messages: [{ role: 'user', content: 'What is the capital of France?' }],
  temperature: 0,
  ...${JSON.stringify(fields)},
});
console.log(JSON.stringify({ answer, computed: runtime.stats().promptTokens }));
await runtime.close();
`;
}

async function run(fields: object): Promise<{ answer: { [field: string]: never }; computed: number }> {
  const outcome = await runProgram(program(fields));
  expect(outcome).toMatchObject({ code: 0, stderr: '' });
  return JSON.parse(outcome.stdout);
}

describe('a prompt', () => {
  it('computed by one process is not computed again by another', async () => {
    const prefilled = await run({ kv_transfer_params: { do_remote_decode: true } });
    const { kv_transfer_params } = prefilled.answer;
    expect(prefilled.computed).toBeGreaterThan(10);
    const resumed = await run({ kv_transfer_params });
    expect(resumed.computed).toBe(1);
    expect(resumed.answer).toMatchObject({
      choices: [{ message: { content: 'The capital of France is Paris.' } }],
      usage: { prompt_tokens_details: { cached_tokens: prefilled.computed - 1 } },
    });
  });
});
