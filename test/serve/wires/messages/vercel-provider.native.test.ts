/** Vercel's provider for Anthropic's API, unmodified, on the embedded model. */
import { createAnthropic } from '@ai-sdk/anthropic';
import { generateObject, generateText, stepCountIs, streamText, tool } from 'ai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createRuntime, type Runtime } from '../../../../src/runtime/runtime.ts';

let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1, contextSize: 512 });
});
afterAll(() => runtime.close());

const model = 'onpolicy-tiny';
const LIMA = 'The capital of Peru is Lima.';

describe("Vercel's provider", () => {
  const provider = () =>
    createAnthropic({ fetch: runtime.fetch, baseURL: 'http://in-process/v1', apiKey: 'any' })(model);
  const PROMPT = { prompt: 'What is the capital of Peru?', temperature: 0, maxRetries: 0 };

  it('generates and streams text', async () => {
    const { text, finishReason, usage } = await generateText({ model: provider(), ...PROMPT });
    expect([text, finishReason, usage.outputTokens]).toEqual([LIMA, 'stop', 10]);
    let streamed = '';
    for await (const part of streamText({ model: provider(), ...PROMPT }).textStream) streamed += part;
    expect(streamed).toBe(LIMA);
  });

  it('runs tools', async () => {
    const asked: string[] = [];
    const tools = {
      get_weather: tool({
        description: 'The weather of a city',
        inputSchema: z.object({ city: z.string() }),
        execute: async ({ city }) => {
          asked.push(city);
          return 'sunny';
        },
      }),
    };
    const { steps } = await generateText({
      model: provider(),
      prompt: 'What is the weather in Paris?',
      temperature: 0,
      maxRetries: 0,
      maxOutputTokens: 40,
      tools,
      stopWhen: stepCountIs(2),
    });
    expect(steps[0]!.finishReason).toBe('tool-calls');
    expect([asked, steps.length]).toEqual([['Paris'], 2]);
  });

  it('generates an object', async () => {
    const { object } = await generateObject({
      model: provider(),
      schema: z.object({ city: z.enum(['Delhi', 'Lima']) }),
      prompt: 'Extract the name, age and city as JSON: Omar is 26 years old and lives in Delhi.',
      temperature: 0,
      maxRetries: 0,
    });
    expect(['Delhi', 'Lima']).toContain(object.city);
  });
});
