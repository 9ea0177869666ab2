/** The embedded model behind the public API, and answers that a request forces it to give. */
import path from 'node:path';
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionRequest,
  LogitsProcessor,
} from '../../../src/protocol/index.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';

/** Fields beside the messages. */
export type Fields = Partial<ChatCompletionRequest>;

/** Random float32 weights and cache: sampled tokens do not depend on the batch. */
export const EXACT_MODEL = path.resolve(import.meta.dirname, '../../golden/training/tiny-llama.gguf');

/** Other weights with the same vocabulary. */
export const OTHER_MODEL = path.resolve(import.meta.dirname, '../../golden/training/tiny-qwen3.gguf');

/** A template that is only the content of its messages. */
export const PLAIN = '{% for m in messages %}{{ m.content }}{% endfor %}';

/** Lets through one token after the other, then only `end`. */
export function onlyThese(ids: readonly number[], end: number): LogitsProcessor {
  return (outputIds: Int32Array, logits: Float32Array) => {
    const next = ids[outputIds.length] ?? end;
    const kept = logits[next]!;
    logits.fill(Number.NEGATIVE_INFINITY);
    logits[next] = kept;
  };
}

/** The id of a special token. */
export async function specialId(runtime: Runtime, text: string): Promise<number> {
  const ids = await runtime.tokenize(text, { parseSpecial: true });
  if (ids.length !== 1) throw new Error(`${text} is no token of its own`);
  return ids[0]!;
}

/** A request whose answer is exactly `text`, and then the end of the turn. */
export async function forced(
  runtime: Runtime,
  text: string,
  fields: Fields = {},
): Promise<ChatCompletionRequest> {
  const ids = await runtime.tokenize(text, { parseSpecial: true });
  return {
    messages: [{ role: 'user', content: 'Say it.' }],
    temperature: 0,
    logits_processors: [onlyThese(ids, await specialId(runtime, '<|im_end|>'))],
    ...fields,
  };
}

/** The whole answer to one question, greedy. */
export async function ask(runtime: Runtime, question: string, fields: Fields = {}): Promise<ChatCompletion> {
  const messages = [{ role: 'user' as const, content: question }];
  return await runtime.createCompletion({ messages, temperature: 0, ...fields, stream: false });
}

/** All chunks of a streamed answer. */
export async function chunksOf(
  runtime: Runtime,
  request: ChatCompletionRequest,
): Promise<ChatCompletionChunk[]> {
  const chunks: ChatCompletionChunk[] = [];
  for await (const chunk of await runtime.createCompletion({ ...request, stream: true })) chunks.push(chunk);
  return chunks;
}
