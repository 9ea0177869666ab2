/** Questions to the embedded model, on a runtime that lives as long as the tests of a file. */
import { afterAll, beforeAll } from 'vitest';
import type { ChatCompletion, ChatCompletionChunk, ChatCompletionRequest } from '../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';

/** Fields of a request beside its question. */
export type Fields = Partial<ChatCompletionRequest>;

export const STORY = 'Tell me a story.';
export const PARIS = 'What is the capital of France?';
/** The embedded model's answer to {@link PARIS}. */
export const PARIS_ANSWER = 'The capital of France is Paris.';
export const COUNT = 'Count from 1 to 9.';

/** A request whose answer is the likeliest one. */
export function request(question: string, fields: Fields = {}): ChatCompletionRequest {
  return { messages: [{ role: 'user', content: question }], temperature: 0, ...fields };
}

/** Opens the runtime before the tests and closes it after them. Without drafts, whose rounding depends on how long steps take. */
export function openRuntime() {
  let runtime: Runtime;
  beforeAll(async () => {
    runtime = await createRuntime({ threads: 1, speculation: false });
  });
  afterAll(() => runtime.close());
  const ask = (question: string, fields: Fields = {}): Promise<ChatCompletion> =>
    runtime.createCompletion({ ...request(question, fields), stream: false });
  return {
    runtime: () => runtime,
    ask,
    text: async (question: string, fields: Fields = {}): Promise<string | null> =>
      (await ask(question, fields)).choices[0]!.message.content,
    stream: async (question: string, fields: Fields = {}): Promise<ChatCompletionChunk[]> => {
      const chunks: ChatCompletionChunk[] = [];
      for await (const chunk of await runtime.createCompletion({
        ...request(question, fields),
        stream: true,
      }))
        chunks.push(chunk);
      return chunks;
    },
  };
}
