/** Clients of HTTP APIs, unmodified, with pictures for the model that sees: each gets the right answers. */
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import Anthropic from '@anthropic-ai/sdk';
import { HumanMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, type LanguageModel, streamText } from 'ai';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';

const FOLDER = new URL('../../../models/seeing/', import.meta.url);
const model = fileURLToPath(new URL('onpolicy-seeing.gguf', FOLDER));
const baseURL = 'http://in-process/v1';
const apiKey = 'any';

/** A picture of models/seeing/pictures, a question about it and the right answer. */
const QUESTIONS: [name: string, question: string, answer: string][] = [
  ['one.png', 'What is in the picture?', 'a purple triangle at the bottom left'],
  ['two.png', 'What colors are the shapes?', 'blue and red'],
  ['three.png', 'How many shapes are there?', '3'],
];

let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ model, threads: 1 });
}, 600_000);
afterAll(() => runtime?.close());

/** Asks about a picture, given as base64. */
type Ask = (base64: string, text: string) => Promise<string | null | undefined>;
const uriOf = (base64: string): string => `data:image/png;base64,${base64}`;
const openai = () => new OpenAI({ fetch: runtime.fetch, baseURL, apiKey, maxRetries: 0 });
const textOf = async (provided: LanguageModel, base64: string, text: string): Promise<string> => {
  const messages = [
    {
      role: 'user' as const,
      content: [
        { type: 'image' as const, image: base64, mediaType: 'image/png' },
        { type: 'text' as const, text },
      ],
    },
  ];
  const whole = await generateText({
    model: provided,
    messages,
    temperature: 0,
    maxRetries: 0,
    maxOutputTokens: 60,
  });
  let streamed = '';
  const { textStream } = streamText({
    model: provided,
    messages,
    temperature: 0,
    maxRetries: 0,
    maxOutputTokens: 60,
  });
  for await (const part of textStream) streamed += part;
  expect(streamed).toBe(whole.text);
  return whole.text;
};

const CLIENTS: Record<string, Ask> = {
  "OpenAI's client": async (base64, text) => {
    const content = [
      { type: 'image_url' as const, image_url: { url: uriOf(base64), detail: 'high' as const } },
      { type: 'text' as const, text },
    ];
    const messages = [{ role: 'user' as const, content }];
    const answer = await openai().chat.completions.create({ model, messages, temperature: 0 });
    expect(answer.usage?.prompt_tokens_details).toMatchObject({ media_tokens: 64 });
    return answer.choices[0]!.message.content;
  },
  "OpenAI's client, by responses": async (base64, text) => {
    const content = [
      { type: 'input_image' as const, image_url: uriOf(base64), detail: 'auto' as const },
      { type: 'input_text' as const, text },
    ];
    const input = [{ role: 'user' as const, content }];
    const { output_text, id } = await openai().responses.create({ model, input, temperature: 0 });
    const again = await openai().responses.create({
      model,
      input: text,
      previous_response_id: id,
      temperature: 0,
    });
    expect(again.output_text).not.toBe('');
    return output_text;
  },
  "Anthropic's client": async (base64, text) => {
    const client = new Anthropic({
      fetch: runtime.fetch,
      baseURL: 'http://in-process',
      apiKey,
      maxRetries: 0,
    });
    const content = [
      {
        type: 'image' as const,
        source: { type: 'base64' as const, media_type: 'image/png' as const, data: base64 },
      },
      { type: 'text' as const, text },
    ];
    const messages = [{ role: 'user' as const, content }];
    const request = { model, max_tokens: 60, temperature: 0, messages };
    const message = await client.messages.create(request);
    const [block] = message.content;
    return block?.type === 'text' ? block.text : null;
  },
  "LangChain's client": async (base64, text) => {
    const client = new ChatOpenAI({
      model,
      temperature: 0,
      apiKey,
      maxRetries: 0,
      configuration: { baseURL, fetch: runtime.fetch },
    });
    const content = [
      { type: 'image_url' as const, image_url: { url: uriOf(base64) } },
      { type: 'text' as const, text },
    ];
    return (await client.invoke([new HumanMessage({ content })])).text;
  },
  "Vercel's SDK with its provider for compatible servers": (base64, text) =>
    textOf(
      createOpenAICompatible({ name: 'onpolicy', baseURL, apiKey, fetch: runtime.fetch })(model),
      base64,
      text,
    ),
  "Vercel's SDK with its provider for OpenAI": (base64, text) =>
    textOf(createOpenAI({ baseURL, apiKey, fetch: runtime.fetch })(model), base64, text),
  "Vercel's SDK with its provider for Anthropic": (base64, text) =>
    textOf(createAnthropic({ baseURL, apiKey, fetch: runtime.fetch })(model), base64, text),
};

describe.each(Object.entries(CLIENTS))('%s', (_, ask) => {
  it.each(QUESTIONS)('%s: %s', async (name, question, answer) => {
    const base64 = fs.readFileSync(new URL(`pictures/${name}`, FOLDER), 'base64');
    expect(await ask(base64, question)).toBe(answer);
  });
});
