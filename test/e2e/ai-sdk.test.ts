/** Vercel's AI SDK with its provider for compatible servers, unmodified, against the embedded model behind a server. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateObject, generateText, type LanguageModel, stepCountIs, streamText, tool } from 'ai';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { openServed, type Served, TOKEN } from './served.ts';

let served: Served;
let model: LanguageModel;
beforeAll(async () => {
  served = await openServed();
  const provider = createOpenAICompatible({
    name: 'onpolicy',
    baseURL: served.baseURL,
    apiKey: TOKEN,
    supportsStructuredOutputs: true,
    includeUsage: true,
  });
  model = provider('tiny');
});
afterAll(() => served.close());

const PROMPT = { prompt: 'What is the capital of Peru?', temperature: 0, maxRetries: 0 };

it('generates text', async () => {
  const { text, finishReason, usage } = await generateText({ model, ...PROMPT });
  expect([text, finishReason, usage.outputTokens]).toEqual(['The capital of Peru is Lima.', 'stop', 10]);
});

it('streams text', async () => {
  const { textStream, usage } = streamText({ model, ...PROMPT });
  let text = '';
  for await (const part of textStream) text += part;
  expect([text, (await usage).outputTokens]).toEqual(['The capital of Peru is Lima.', 10]);
});

it('generates an object', async () => {
  const { object } = await generateObject({
    model,
    schema: z.object({ name: z.string(), age: z.number(), city: z.string() }),
    prompt: 'Extract the name, age and city as JSON: Omar is 26 years old and lives in Delhi.',
    temperature: 0,
    maxRetries: 0,
  });
  expect(object).toEqual({ name: 'Omar', age: 26, city: 'Delhi' });
});

it('calls tools', async () => {
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
  const prompt = 'What is the weather in Paris?';
  const { steps } = await generateText({
    model,
    prompt,
    temperature: 0,
    maxRetries: 0,
    maxOutputTokens: 40,
    tools,
    stopWhen: stepCountIs(2),
  });
  expect(steps[0]!.finishReason).toBe('tool-calls');
  expect(steps[0]!.toolCalls).toMatchObject([{ toolName: 'get_weather', input: { city: 'Paris' } }]);
  expect(steps).toHaveLength(2);
  const { toolCalls } = streamText({ model, prompt, temperature: 0, maxRetries: 0, tools });
  expect(await toolCalls).toMatchObject([{ toolName: 'get_weather', input: { city: 'Paris' } }]);
  expect(asked).toEqual(['Paris', 'Paris']);
});

it('aborts', async () => {
  const controller = new AbortController();
  const { textStream } = streamText({
    model,
    prompt: 'Tell me a story.',
    providerOptions: { onpolicy: { ignore_eos: true } },
    abortSignal: controller.signal,
    onError: () => {},
  });
  for await (const part of textStream) if (part !== '') controller.abort();
  await expect.poll(() => served.runtime.stats().running, { interval: 5 }).toBe(0);
});
