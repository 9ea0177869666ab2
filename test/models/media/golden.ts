/** Pairs of a model and a projector with random weights, and conversations with the answers of llama.cpp's server. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ChatCompletionRequest, RuntimeOptions } from '../../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';

const FOLDER = fileURLToPath(new URL('../../golden/media/', import.meta.url));

export const KINDS = ['mlp', 'idefics3', 'gemma3', 'qwen2vl', 'qwen2a'] as const;
export type Kind = (typeof KINDS)[number];

/** A line of the data. */
export type Conversation = {
  readonly kind: Kind;
  readonly case: number;
  readonly messages: ChatCompletionRequest['messages'];
  readonly prompt_tokens: number;
  readonly token_ids: readonly number[];
  readonly logprobs: readonly number[];
  readonly margin: number;
};

/** Below this margin a difference in rounding may choose the other token. */
export const TIE = 0.02;

/** The bytes of a picture or sound. */
export const fileOf = (name: string): Buffer => fs.readFileSync(path.join(FOLDER, 'files', name));

const TYPES: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  bmp: 'image/bmp',
  gif: 'image/gif',
};

/** A picture as clients send it. */
export const uriOf = (name: string): string =>
  `data:${TYPES[path.extname(name).slice(1)]};base64,${fileOf(name).toString('base64')}`;

/** Puts data where the messages name files. */
function withData(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withData);
  if (typeof value !== 'object' || value === null) return value;
  const { file, ...rest } = value as { file?: string; format?: string };
  if (file === undefined)
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withData(inner)]));
  return rest.format ? { ...rest, data: fileOf(file).toString('base64') } : { url: uriOf(file) };
}

/** The conversations of a pair. */
export function conversationsOf(kind: Kind): Conversation[] {
  const lines = fs.readFileSync(path.join(FOLDER, 'golden.jsonl'), 'utf8').trim().split('\n');
  return lines
    .map((line) => JSON.parse(line) as Conversation)
    .filter((conversation) => conversation.kind === kind)
    .map((conversation) => ({
      ...conversation,
      messages: withData(conversation.messages) as Conversation['messages'],
    }));
}

/** The model of a pair. */
export const pathOf = (kind: Kind): string => path.join(FOLDER, kind, 'text.gguf');

/** A runtime on one thread whose default model is a pair. */
export function openPair(kind: Kind, options: RuntimeOptions = {}): Promise<Runtime> {
  return createRuntime({
    gpu: false,
    threads: 1,
    maxSequences: 8,
    model: { path: pathOf(kind) },
    ...options,
  });
}

/** A request whose answer is that of the data. */
export const toRequest = ({ messages }: Pick<Conversation, 'messages'>) =>
  ({
    messages,
    temperature: 0,
    max_completion_tokens: 12,
    ignore_eos: true,
    logprobs: true,
    return_token_ids: true,
    stream: false,
  }) as const;
