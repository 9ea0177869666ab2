/** Layers for multi-token prediction as a source of drafts: right or wrong, no answer changes. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { StepCosts } from '../../src/engine/step-costs.ts';
import { readHeader } from '../../src/gguf/index.ts';
import type { ChatCompletionRequest } from '../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-heads-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** A random model with such a layer. */
async function randomModel(name: string): Promise<string> {
  const file = path.join(folder, `${name}.gguf`);
  const script = '../../scripts/architectures/write.mjs';
  const { writeArchitecture } = await import(/* @vite-ignore */ script);
  await writeArchitecture(file, { name });
  return file;
}

/**
 * The same where the next token depends on the last alone, in the model and in its heads: all drafts are right. `wrong`: the layer of a
 * head that knows nothing.
 */
async function rightModel(random: string, wrong?: number): Promise<string> {
  const file = random.replace('.gguf', wrong === undefined ? '-right.gguf' : '-half.gguf');
  fs.copyFileSync(random, file);
  const handle = fs.openSync(file, 'r+');
  for (const [name, { shape, offset }] of (await readHeader(file)).tensors) {
    const values = new Float32Array(shape.reduce((count, size) => count * size, 1));
    const [inputs, outputs] = shape as [number, number];
    if (/(enorm|shared_head_norm)\.weight$|^output_norm\.weight$/.test(name)) values.fill(1);
    else if (name === `blk.${wrong}.nextn.eh_proj.weight`) values.fill(0);
    else if (name.endsWith('eh_proj.weight')) for (let i = 0; i < outputs; i++) values[i * inputs + i] = 1;
    else if (!/(attn_output|ffn_down\w*|ssm_out)\.weight$/.test(name)) continue;
    fs.writeSync(handle, Buffer.from(values.buffer), 0, values.byteLength, offset);
  }
  fs.closeSync(handle);
  return file;
}

/** Drafts are checked whatever a busy machine does: nothing is measured. */
vi.spyOn(StepCosts.prototype, 'record').mockImplementation(() => {});

const asked = (text: string, fields: Partial<ChatCompletionRequest> = {}) => ({
  messages: [{ role: 'user' as const, content: text }],
  max_tokens: 40,
  ignore_eos: true,
  return_token_ids: true,
  seed: 5,
  ...fields,
  stream: false as const,
});
const schema = {
  type: 'object',
  properties: { a: { type: 'array', items: { type: 'integer' } } },
  required: ['a'],
};
const REQUESTS = [
  asked('one two', { temperature: 0 }),
  asked('three four', { temperature: 0.9 }),
  asked('five six', { temperature: 1, n: 2, logprobs: true, top_logprobs: 2 }),
  asked('seven', { temperature: 1, structured_outputs: { json: schema }, ignore_eos: false }),
];

/** The tokens of all answers, asked at once; and how often drafts were right. */
async function answers(model: string, speculation: false | { method: 'mtp'; maxTokens: number }) {
  const runtime = await createRuntime({ model, speculation, gpu: false, threads: 1, contextSize: 256 });
  try {
    const all = await Promise.all(REQUESTS.map((request) => runtime.createCompletion(request)));
    const later = await runtime.createCompletion(REQUESTS[1]!); // behind a cached prompt
    const { draftedTokens, acceptedTokens } = runtime.stats();
    const tokens = [...all, later].flatMap(({ choices }) => choices.map(({ token_ids }) => token_ids));
    return { tokens, draftedTokens, acceptedTokens };
  } finally {
    await runtime.close();
  }
}

describe.each(['qwen35-mtp', 'glm4moe-mtp', 'hy_v3-mtp2'])('%s', (name) => {
  let random: string;
  beforeAll(async () => {
    random = await randomModel(name);
  });

  it('answers the same with drafts that are wrong', { timeout: 60_000 }, async () => {
    const plain = await answers(random, false);
    const drafted = await answers(random, { method: 'mtp', maxTokens: 3 });
    expect(drafted.tokens).toEqual(plain.tokens);
    expect(drafted.draftedTokens).toBeGreaterThan(0);
  });

  it('answers the same with drafts that are right', { timeout: 60_000 }, async () => {
    const right = await rightModel(random);
    const plain = await answers(right, false);
    const drafted = await answers(right, { method: 'mtp', maxTokens: 3 });
    expect(drafted.tokens).toEqual(plain.tokens);
    expect(drafted.acceptedTokens).toBeGreaterThan(0);
    expect(drafted.acceptedTokens).toBe(drafted.draftedTokens);
  });
});

describe('a model with several such layers', () => {
  it('makes each draft of a step with the next of them', { timeout: 60_000 }, async () => {
    const half = await rightModel(await randomModel('hy_v3-mtp2'), 5);
    const plain = await answers(half, false);
    const drafted = await answers(half, { method: 'mtp', maxTokens: 3 });
    expect(drafted.tokens).toEqual(plain.tokens);
    expect(drafted.acceptedTokens).toBeGreaterThan(0);
    expect(drafted.acceptedTokens).toBeLessThan(drafted.draftedTokens);
  });
});

describe('a model without such layers', () => {
  let runtime: Runtime;
  beforeAll(async () => {
    runtime = await createRuntime({ threads: 1 });
  });
  afterAll(() => runtime.close());

  it('is refused by name', async () => {
    const request = asked('one', { speculation: { method: 'mtp' } });
    await expect(runtime.createCompletion(request)).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      param: 'speculation.method',
      message: expect.stringContaining('multi-token prediction'),
    });
  });
});
