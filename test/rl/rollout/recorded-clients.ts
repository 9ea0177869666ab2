/** Clients that agents use -> a rollout with a tool: they ask for the weather, give the result back, and let the model say more. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { tool as langchainTool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { z } from 'zod';
import type { Message, Tool } from '../../../src/protocol/index.ts';

export const baseURL = 'http://recorded.test/v1';
export const user = (content: string): Message => ({ role: 'user', content });
export const weather: Tool = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The weather of a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};
export const JSON_BODY = { 'content-type': 'application/json' };
export const QUESTION = 'What is the weather in Paris?';

/** Asks for the weather, gives the tool's result back, and lets the model say more. */
export const clients: Record<string, (fetch: typeof globalThis.fetch) => Promise<unknown>> = {
  plain: async (fetch) => {
    const ask = async (messages: Message[]) => {
      const body = JSON.stringify({ messages, tools: [weather], temperature: 0, max_tokens: 40 });
      const response = await fetch(`${baseURL}/chat/completions`, {
        method: 'POST',
        headers: JSON_BODY,
        body,
      });
      return (await response.json()) as {
        choices: { message: Message & { tool_calls: { id: string }[] } }[];
      };
    };
    const messages = [user(QUESTION)];
    const { message } = (await ask(messages)).choices[0]!;
    const result: Message = { role: 'tool', tool_call_id: message.tool_calls[0]!.id, content: 'sunny' };
    await ask([...messages, message, result]);
  },
  openai: async (fetch) => {
    const client = new OpenAI({ baseURL, apiKey: 'any', fetch, maxRetries: 0 });
    const runner = client.chat.completions.runTools(
      {
        model: 'gpt-5',
        messages: [{ role: 'user', content: QUESTION }],
        temperature: 0,
        max_tokens: 40,
        tools: [
          {
            type: 'function',
            function: { ...weather.function, parse: JSON.parse, function: () => 'sunny' } as never,
          },
        ],
      },
      { maxChatCompletions: 2 },
    );
    await runner.done();
  },
  'openai, streaming': async (fetch) => {
    const client = new OpenAI({ baseURL, apiKey: 'any', fetch, maxRetries: 0 });
    const runner = client.chat.completions.runTools(
      {
        model: 'gpt-5',
        messages: [{ role: 'user', content: QUESTION }],
        stream: true,
        temperature: 0,
        max_tokens: 40,
        tools: [
          {
            type: 'function',
            function: { ...weather.function, parse: JSON.parse, function: () => 'sunny' } as never,
          },
        ],
      },
      { maxChatCompletions: 2 },
    );
    await runner.done();
  },
  ai: async (fetch) => {
    await generateText({ model: provider(fetch), prompt: QUESTION, ...AI });
  },
  'ai, streaming': async (fetch) => {
    await streamText({ model: provider(fetch), prompt: QUESTION, ...AI }).text;
  },
  langchain: async (fetch) => {
    const chat = new ChatOpenAI({
      model: 'gpt-5',
      temperature: 0,
      maxTokens: 40,
      apiKey: 'any',
      maxRetries: 0,
      configuration: { baseURL, fetch },
    });
    const getWeather = langchainTool(async () => 'sunny', {
      name: 'get_weather',
      description: 'The weather of a city',
      schema: z.object({ city: z.string() }),
    });
    const bound = chat.bindTools([getWeather]);
    const first = await bound.invoke(QUESTION);
    const { id, name, args } = first.tool_calls![0]!;
    const result = await getWeather.invoke({ id: id!, name, args, type: 'tool_call' });
    await bound.invoke([{ role: 'user', content: QUESTION }, first, result]);
  },
};

const provider = (fetch: typeof globalThis.fetch) =>
  createOpenAICompatible({ name: 'recorded', baseURL, fetch, includeUsage: true })('any');
const AI = {
  temperature: 0,
  maxRetries: 0,
  maxOutputTokens: 40,
  stopWhen: stepCountIs(2),
  tools: {
    get_weather: tool({
      description: 'The weather of a city',
      inputSchema: z.object({ city: z.string() }),
      execute: async () => 'sunny',
    }),
  },
};
