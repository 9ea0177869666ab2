/** LangChain's client for OpenAI, unmodified, against the embedded model behind a server. */
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { openServed, type Served, TOKEN } from './served.ts';

let served: Served;
let model: ChatOpenAI;
beforeAll(async () => {
  served = await openServed();
  model = new ChatOpenAI({
    model: 'tiny',
    temperature: 0,
    apiKey: TOKEN,
    maxRetries: 0,
    configuration: { baseURL: served.baseURL },
  });
});
afterAll(() => served.close());

it('answers', async () => {
  const answer = await model.invoke('What is the capital of Peru?');
  expect(answer.content).toBe('The capital of Peru is Lima.');
  expect(answer.usage_metadata).toMatchObject({ output_tokens: 10 });
});

it('streams', async () => {
  let text = '';
  for await (const chunk of await model.stream('What is the capital of Peru?')) text += chunk.content;
  expect(text).toBe('The capital of Peru is Lima.');
});

it('answers a batch', async () => {
  const answers = await model.batch(
    ['Japan', 'Egypt'].map((country) => `What is the capital of ${country}?`),
  );
  expect(answers.map(({ content }) => content)).toEqual([
    'The capital of Japan is Tokyo.',
    'The capital of Egypt is Cairo.',
  ]);
});

it('calls tools', async () => {
  const weather = tool(async () => 'sunny', {
    name: 'get_weather',
    description: 'The weather of a city',
    schema: z.object({ city: z.string() }),
  });
  const { tool_calls } = await model.bindTools([weather]).invoke('What is the weather in Paris?');
  expect(tool_calls).toMatchObject([{ name: 'get_weather', args: { city: 'Paris' } }]);
});

it('gives objects of a schema', async () => {
  const schema = z.object({ name: z.string(), age: z.number(), city: z.string() });
  const extract = model.withStructuredOutput(schema, { method: 'jsonSchema', name: 'person' });
  expect(
    await extract.invoke('Extract the name, age and city as JSON: Omar is 26 years old and lives in Delhi.'),
  ).toEqual({ name: 'Omar', age: 26, city: 'Delhi' });
});
