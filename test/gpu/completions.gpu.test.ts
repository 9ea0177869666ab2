import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type ChatCompletion,
  type ChatCompletionRequest,
  createRuntime,
  type Runtime,
} from '../../src/index.ts';
import { ask, EMBEDDED } from '../answer/models.ts';
import { largestDistance, whyNoDevice } from './device.ts';

const TOLERANCE = 2e-3; // of a log-probability, against the CPU
const QUESTIONS = ['What is the capital of Peru?', 'Tell me a story.', 'What is 12 + 7?'];

const why = await whyNoDevice();
const because = why ? ` (skipped: ${why})` : '';
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-gpu-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

function open(gpu: 'vulkan' | false, model: object = {}): Promise<Runtime> {
  const home = path.join(folder, gpu === false ? 'cpu' : 'gpu');
  return createRuntime({
    model: { path: EMBEDDED, ...model },
    gpu,
    home,
    kvTransferFolder: folder,
    maxSequences: 8,
  });
}

function measured(question: string, fields: Partial<ChatCompletionRequest> = {}) {
  return ask(question, {
    max_tokens: 16,
    logprobs: true,
    top_logprobs: 3,
    return_token_ids: true,
    ...fields,
  });
}

/** Tokens are equal, and so are their log-probabilities and the probabilities of alternatives, but for rounding. */
function expectAlike(answer: ChatCompletion, expected: ChatCompletion): void {
  const tokens = ({ choices }: ChatCompletion) => choices.map(({ token_ids }) => token_ids);
  expect(tokens(answer)).toEqual(tokens(expected));
  const entries = ({ choices }: ChatCompletion) => choices.flatMap(({ logprobs }) => logprobs!.content!);
  const chosen = (found: ChatCompletion) => entries(found).map(({ logprob }) => logprob);
  expect(largestDistance(chosen(answer), chosen(expected))).toBeLessThan(TOLERANCE);
  const alternatives = (found: ChatCompletion) =>
    entries(found).flatMap(({ top_logprobs }) => top_logprobs!.map(({ logprob }) => Math.exp(logprob)));
  expect(largestDistance(alternatives(answer), alternatives(expected))).toBeLessThan(TOLERANCE);
}

describe.skipIf(why)(`answers of a GPU${because}`, () => {
  let gpu: Runtime;
  let cpu: Runtime;
  beforeAll(async () => {
    gpu = await open('vulkan');
    cpu = await open(false, { kernels: 'plain' });
  });
  afterAll(async () => {
    await gpu?.close();
    await cpu?.close();
  });

  it.each(QUESTIONS)('have the tokens and log-probabilities of the CPU: %s', async (question) => {
    const request = measured(question);
    expectAlike(await gpu.createCompletion(request), await cpu.createCompletion(request));
  });

  it('score a prompt as the CPU does', async () => {
    const request = ask(QUESTIONS[0]!, { max_tokens: 1, prompt_logprobs: 1 });
    const scores = async (runtime: Runtime) => {
      const { prompt_logprobs } = await runtime.createCompletion(request);
      return prompt_logprobs!.slice(1).map((entry) => Object.values(entry!)[0]!.logprob);
    };
    const [found, wanted] = [await scores(gpu), await scores(cpu)];
    expect(found.length).toBe(wanted.length);
    for (const [i, score] of found.entries()) // many tokens at once are multiplied in 16 bits
      expect(Math.abs(score - wanted[i]!)).toBeLessThan(2e-2 * Math.max(1, -wanted[i]!));
  });

  it('stream the same text', async () => {
    const request = ask(QUESTIONS[1]!, { max_tokens: 16 });
    const whole = await gpu.createCompletion(request);
    let text = '';
    for await (const chunk of await gpu.createCompletion({ ...request, stream: true }))
      text += chunk.choices[0]?.delta.content ?? '';
    expect(text).toBe(whole.choices[0]!.message.content);
    expect(text).not.toBe('');
  });

  it('fit a schema', async () => {
    const schema = {
      type: 'object',
      properties: {
        name: { type: 'string', maxLength: 8 },
        age: { type: 'integer', minimum: 0, maximum: 99 },
      },
      required: ['name', 'age'],
      additionalProperties: false,
    };
    const request = ask('Omar is 26 years old.', {
      max_tokens: 40,
      response_format: { type: 'json_schema', json_schema: { name: 'person', schema } },
    });
    const { choices } = await gpu.createCompletion(request);
    expect(JSON.parse(choices[0]!.message.content!)).toEqual({
      name: expect.any(String),
      age: expect.any(Number),
    });
  });

  it('reuse the cache of a prefix', async () => {
    const request = measured('What is the capital of Peru? And of Chile?');
    const first = await gpu.createCompletion(request);
    const second = await gpu.createCompletion(request);
    expect(second.usage.prompt_tokens_details!.cached_tokens).toBe(first.usage.prompt_tokens - 1);
    expectAlike(second, first);
  });

  it('are the same in company', async () => {
    const together = await Promise.all(QUESTIONS.map((question) => gpu.createCompletion(measured(question))));
    for (const [i, answer] of together.entries())
      expectAlike(answer, await cpu.createCompletion(measured(QUESTIONS[i]!)));
  });

  it('go on from a prompt that another process handed over, on either device', async () => {
    const prefill = { kv_transfer_params: { do_remote_decode: true } };
    for (const [from, to] of [
      [gpu, gpu],
      [gpu, cpu],
      [cpu, gpu],
    ] as const) {
      const { kv_transfer_params } = await from.createCompletion(ask(QUESTIONS[0]!, prefill));
      const before = to.stats().promptTokens;
      const resumed = await to.createCompletion({ ...measured(QUESTIONS[0]!), kv_transfer_params });
      expect(to.stats().promptTokens - before).toBe(1);
      expectAlike(resumed, await cpu.createCompletion(measured(QUESTIONS[0]!)));
    }
  });

  it.each([1, 2])('are the same with %i layers on the GPU', async (gpuLayers) => {
    await using part = await open('vulkan', { gpuLayers });
    const request = measured(QUESTIONS[0]!);
    expectAlike(await part.createCompletion(request), await cpu.createCompletion(request));
  });

  it('are the same with a cache of 32 bits', async () => {
    await using wide = await open('vulkan', { cacheBits: 32 });
    await using exact = await open(false, { cacheBits: 32 });
    const request = measured(QUESTIONS[0]!);
    expectAlike(await wide.createCompletion(request), await exact.createCompletion(request));
  });

  it('are freed with their request', async () => {
    const stream = await gpu.createCompletion({ ...ask(QUESTIONS[1]!, { max_tokens: 200 }), stream: true });
    for await (const _ of stream) break;
    await expect.poll(() => gpu.stats().running).toBe(0);
    expect(gpu.stats()).toMatchObject({ waiting: 0, kvTokensInUse: 0 });
  });
});
