/** A model with more in its prompt as the teacher -> the same model without it, which answers alike. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EMBEDDED_MODEL } from '../../../src/models/named-models.ts';
import type { Message, MetricValues } from '../../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-distill-'));
let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ home, gpu: false, threads: 1 });
});
afterAll(async () => {
  await runtime.close();
  fs.rmSync(home, { recursive: true });
});

const asked = (content: string): Message[] => [{ role: 'user', content }];
const told: Message[] = [
  { role: 'user', content: 'My name is Anna.' },
  { role: 'assistant', content: 'Nice to meet you, Anna.' },
];
const tasks = [{ messages: asked('What is my name?') }];
const settings = {
  model: EMBEDDED_MODEL,
  teacher: { model: EMBEDDED_MODEL, messages: told },
  tasks,
  maxTokens: 12,
};

async function answerOf(model: string): Promise<string> {
  const { choices } = await runtime.createCompletion({
    model,
    messages: tasks[0]!.messages,
    temperature: 0,
    max_tokens: 12,
  });
  return choices[0]!.message.content!;
}

describe('distill', () => {
  it('learns off policy what the teacher says, with its likeliest tokens', async () => {
    const seen: MetricValues[] = [];
    const { checkpoint, modelId, metrics } = await runtime.distill({
      ...settings,
      method: 'off_policy',
      topK: 3,
      steps: 12,
      batchSize: 1,
      learningRate: 5e-3,
      onEvent: (event) => seen.push(event.metrics),
    });
    expect(seen).toEqual(metrics);
    expect(metrics[11]!['loss/train']).toBeLessThan(metrics[0]!['loss/train']! / 2);
    const { choices } = await runtime.createCompletion({
      model: EMBEDDED_MODEL,
      messages: [...told, ...tasks[0]!.messages],
      temperature: 0,
      max_tokens: 12,
    });
    expect(choices[0]!.message.content).toContain('Anna');
    expect(await answerOf(EMBEDDED_MODEL)).not.toContain('Anna');
    expect(await answerOf(checkpoint)).toBe(choices[0]!.message.content);
    expect((await runtime.models.retrieve(modelId)).step).toBe(1);
    expect(await runtime.trainingRuns.list()).toEqual([]);
  });

  it('moves on policy towards the teacher', async () => {
    const { metrics } = await runtime.distill({
      ...settings,
      steps: 8,
      batchSize: 1,
      samples: 8,
      learningRate: 3e-3,
    });
    const divergence = metrics.map((one) => one['distill/reverse_kl']!);
    expect(divergence.at(-1)).toBeLessThan(divergence[0]! * 0.8);
  });

  it.each([
    [{ ...settings, tasks: [] }, 'tasks: expected a non-empty list'],
    [{ ...settings, topK: 2 }, 'topK: expected 0 with method on_policy, got 2'],
    [{ ...settings, teacher: { name: 'x' } }, 'teacher.name: not a field of teacher'],
    [
      { ...settings, teacher: { service: { createCompletion: async () => ({ choices: [] }) } } },
      'the teacher does not score prompts: it has no text completions',
    ],
  ])('refuses %#', async (options, message) => {
    await expect(
      runtime.distill({ ...options, steps: 1, batchSize: 1, samples: 1 } as never),
    ).rejects.toThrow(message);
  });

  it('refuses a teacher with another vocabulary', async () => {
    const service = {
      createCompletion: runtime.createCompletion.bind(runtime),
      createTextCompletion: async (request: { prompt: number[] }) => ({
        choices: [
          {
            prompt_logprobs: request.prompt.map((id) => ({
              [id]: { logprob: -1, rank: 1, decoded_token: 'other' },
            })),
          },
        ],
      }),
    };
    const teacher = { service: service as never, model: EMBEDDED_MODEL };
    await expect(
      runtime.distill({ ...settings, teacher, steps: 1, batchSize: 1, samples: 1 }),
    ).rejects.toThrow(
      /^teacher: expected the vocabulary of the student; token \d+ is "other" for the teacher/,
    );
  });
});
