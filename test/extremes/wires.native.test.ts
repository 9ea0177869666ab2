/**
 * Requests of extremes to every API -> the same answer in process and over HTTP, whole and streamed. What is faulty is refused both ways with
 * the path of the field, and nothing fails on the server's side. `ONPOLICY_DRAWS=2000000` asks more.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { OnpolicyError } from '../../src/errors.ts';
import { checkAndAdmitChat, checkEmbeddingRequest, checkRequest } from '../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { createHandler, type Handler } from '../../src/serve/http/index.ts';
import { toChat } from '../../src/serve/wires/messages/to-chat.ts';
import { type ResolvedRequest, toChat as responseToChat } from '../../src/serve/wires/responses/to-chat.ts';
import { EXACT_MODEL } from '../answer/fields/model.ts';
import { countOf } from '../counts.ts';
import { writeTinyBert } from '../models/tiny-bert.ts';
import { validText } from '../protocol/request.ts';
import { inWords, random } from './draws.ts';
import { problemOf } from './entry-points.ts';
import * as forms from './forms.ts';

const REQUESTS = Math.ceil(countOf('ONPOLICY_DRAWS', 100_000) / 500); // of each API
const AT_ONCE = 8;
const MOST_CHOICES = 8;
const MOST_TOKENS = 40;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-wires-'));
const embedder = path.join(folder, 'embedder.gguf');
let runtime: Runtime;
let handler: Handler;
beforeAll(async () => {
  writeTinyBert(embedder, 1);
  runtime = await createRuntime({
    model: EXACT_MODEL,
    threads: 1,
    contextSize: 512, // the model's template shows no tools: they are described in words
    prefixCache: false, // what it saves is part of the usage
    scheduling: 'priority',
    models: { embedder },
  });
  handler = createHandler(runtime, { maxLogprobs: null });
});
afterAll(async () => {
  await runtime.close();
  fs.rmSync(folder, { recursive: true });
});

type Fields = Readonly<Record<string, unknown>>;

/** One API. */
type Wire = {
  readonly path: string;
  readonly form: typeof forms.TEXT;
  readonly ask: (request: never) => Promise<unknown>;
  /** Tokens and choices that it asks for. Throws where the entry point refuses it. */
  readonly size: (request: Fields) => { readonly tokens: number | null; readonly choices: number };
  readonly more: Fields;
};

const chatSize = (chat: object): { tokens: number | null; choices: number } => {
  const { max_completion_tokens: tokens, n: choices } = checkAndAdmitChat(chat);
  return { tokens, choices };
};

const WIRES: readonly Wire[] = [
  {
    path: '/v1/completions',
    form: forms.TEXT,
    ask: (request) => runtime.createTextCompletion(request),
    size: (request) => {
      const { chat, prompts } = validText(request);
      return { tokens: chat.max_completion_tokens, choices: chat.n * prompts.length };
    },
    more: { seed: 5, stream: false, stream_options: null },
  },
  {
    path: '/v1/messages',
    form: forms.MESSAGE,
    ask: (request) => runtime.createMessage(request),
    size: (request) => chatSize(toChat(checkRequest('MessageRequest', request, {})).chat),
    more: { seed: 5, stream: false },
  },
  {
    path: '/v1/responses',
    form: forms.RESPONSE,
    ask: (request) => runtime.createResponse(request),
    size: (request) =>
      chatSize(responseToChat(checkRequest('ResponseRequest', request, {}) as ResolvedRequest, []).chat),
    more: { seed: 5, stream: false },
  },
  {
    path: '/v1/embeddings',
    form: forms.EMBEDDING,
    ask: (request) => runtime.createEmbeddings({ ...(request as Fields), model: 'embedder' } as never),
    size: (request) => {
      const { input } = checkEmbeddingRequest(request);
      return { tokens: 0, choices: Array.isArray(input) ? input.length : 1 };
    },
    more: { model: 'embedder' },
  },
];

/** Fields that differ between two answers to one request. */
const DRAWN = new Set(['id', 'call_id', 'created', 'created_at', 'completed_at', 'tool_use_id']);

/** Returns true if two answers are equal except ids, times, and digits of numbers that depend on the batch. */
function isSame(one: unknown, other: unknown): boolean {
  if (typeof one === 'number' && typeof other === 'number')
    return Number.isInteger(one) ? one === other : Math.abs(one - other) < 0.02 * (1 + Math.abs(one));
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null)
    return one === other;
  const [keys, others] = [one, other].map((value) => Object.keys(value).filter((key) => !DRAWN.has(key)));
  const [left, right] = [one, other] as [Fields, Fields];
  return (
    isDeepStrictEqual(keys, others) &&
    keys!.every((key) => isSame(numbersAt(key, left), numbersAt(key, right)))
  );
}

/** A field; embeddings in base64 as the numbers that they are. */
function numbersAt(key: string, value: Fields): unknown {
  const field = value[key];
  if (key !== 'embedding' || typeof field !== 'string') return field;
  return Array.from(new Float32Array(Uint8Array.from(Buffer.from(field, 'base64')).buffer));
}

/** An answer, or the error of a faulty request. `problem`: what must not be. */
type Outcome = {
  readonly answer?: unknown;
  readonly code?: string;
  readonly problem?: string | null;
  /** Fields that nobody knows, at any depth: over HTTP they are ignored. */
  readonly hasUnknown?: boolean;
};

async function inProcess(wire: Wire, request: Fields): Promise<Outcome> {
  try {
    return { answer: JSON.parse(JSON.stringify(await wire.ask(request as never))) };
  } catch (error) {
    const problem = problemOf(error);
    if (!(error instanceof OnpolicyError)) return { problem, code: 'none' };
    const hasUnknown = error.detail?.some(({ type }) => type === 'unknown_field') ?? false;
    return { problem, code: error.code, hasUnknown };
  }
}

async function overHttp(wire: Wire, request: Fields): Promise<Outcome> {
  const body = JSON.stringify(request);
  const response = await handler(new Request(`http://localhost${wire.path}`, { method: 'POST', body }));
  const answer = (await response.json()) as { error?: { param?: string; code: string; detail?: unknown[] } };
  if (response.status === 200) return { answer };
  const text = `a ${response.status}: ${JSON.stringify(answer).slice(0, 300)}`;
  const isPlaced = answer.error?.param || (answer.error?.detail?.length ?? 0) > 0;
  const given = answer.error?.code ?? text;
  // OpenAI's clients know an overflow by this code.
  const code = given === 'context_length_exceeded' ? 'CONTEXT_OVERFLOW' : given;
  return { code, problem: response.status < 500 && isPlaced ? null : text };
}

/** Returns `short` if a request is not too much work for a test, `refused` if the entry point refuses it, otherwise null. */
function verdict({ size }: Wire, request: Fields): 'short' | 'refused' | null {
  try {
    const { tokens, choices } = size(request);
    return choices <= MOST_CHOICES && (tokens ?? 999) <= MOST_TOKENS ? 'short' : null;
  } catch {
    return 'refused';
  }
}

it.each(WIRES.map((wire) => [wire.path, wire] as const))('%s', { timeout: 300_000 }, async (_, wire) => {
  const problems: string[] = [];
  const counts = { answered: 0, refused: 0, ignored: 0 };
  const draws = random(wire.form, 11);
  let asked = 0;
  let faulty = 0;
  const worker = async (): Promise<void> => {
    while (asked < REQUESTS) {
      const draw = draws.next().value!;
      if (!draw.isJson) continue;
      const request = { ...(JSON.parse(JSON.stringify(draw.input)) as Fields), ...wire.more };
      const expected = verdict(wire, request);
      if (expected === null || request['request_id']) continue; // an id that runs is refused
      if (JSON.stringify(request).includes('"hf:')) continue; // would be downloaded
      if (expected === 'refused' && faulty++ > REQUESTS / 2) continue;
      asked += 1;
      const here = await inProcess(wire, request);
      const say = (problem: string): number => problems.push(`${inWords(draw)}: ${problem}`);
      if (here.problem) say(here.problem);
      if (expected === 'refused' && !here.code) say('was refused by its entry point, and answered');
      // An unknown field is an error only in process. Over HTTP such a request may be too much work for a test.
      const isIgnored = here.hasUnknown || 'unknown_field' in request;
      if (isIgnored && expected === 'refused') {
        counts.ignored += 1;
        continue;
      }
      const there = await overHttp(wire, request);
      if (there.problem) say(there.problem);
      if (here.code === undefined && there.code === undefined) {
        counts.answered += 1;
        if (!isSame(here.answer, there.answer))
          say(`gave ${JSON.stringify(there.answer)} over HTTP, ${JSON.stringify(here.answer)} in process`);
      } else {
        counts.refused += 1;
        // A time limit may end one of two that take as long.
        const isTimed = 'timeout_ms' in request && [here.code, there.code].includes('TIMEOUT');
        if (here.code !== there.code && !isTimed)
          say(`was ${there.code ?? 'answered'} over HTTP, ${here.code} in process`);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  process.stdout.write(`${wire.path} ${JSON.stringify(counts)}\n`);
  expect(problems.slice(0, 20), `${problems.length} of ${REQUESTS}`).toEqual([]);
  // More than a third are answered. The share of a few draws varies.
  expect(counts.answered).toBeGreaterThan((REQUESTS < 100 ? 0.1 : 0.3) * REQUESTS);
  expect(runtime.stats()).toMatchObject({ running: 0, waiting: 0 });
});

/** The text of a stream's events. */
function textOf(events: readonly Fields[]): string {
  return events
    .map((event) => {
      const { choices, delta, type } = event as {
        choices?: { text: string }[];
        delta?: string | { text?: string };
        type?: string;
      };
      if (choices) return choices.map(({ text }) => text).join('');
      if (type === 'response.output_text.delta') return delta as string;
      return type === 'content_block_delta' ? ((delta as { text?: string }).text ?? '') : '';
    })
    .join('');
}

const story = 'Tell me a story.';
it.each<[string, Fields, (request: never) => Promise<unknown>, (answer: never) => string]>([
  [
    '/v1/completions',
    { prompt: story, max_tokens: 12 },
    (request) => runtime.createTextCompletion(request),
    ({ choices }: { choices: { text: string }[] }) => choices[0]!.text,
  ],
  [
    '/v1/messages',
    { messages: [{ role: 'user', content: story }], max_tokens: 12 },
    (request) => runtime.createMessage(request),
    ({ content }: { content: { text: string }[] }) => content.map(({ text }) => text).join(''),
  ],
  [
    '/v1/responses',
    { input: story, max_output_tokens: 12 },
    (request) => runtime.createResponse(request),
    ({ output_text }: { output_text: string }) => output_text,
  ],
])('%s says the same in four ways', async (where, fields, ask, read) => {
  const request = { ...fields, seed: 5, temperature: 1 };
  const url = `http://localhost${where}`;
  const post = (body: Fields) => handler(new Request(url, { method: 'POST', body: JSON.stringify(body) }));
  const whole = read((await ask(request as never)) as never);
  expect(whole.length).toBeGreaterThan(3);
  expect(read((await (await post(request)).json()) as never)).toBe(whole);
  const events: Fields[] = [];
  for await (const event of (await ask({ ...request, stream: true } as never)) as AsyncIterable<Fields>)
    events.push(event);
  expect(textOf(events)).toBe(whole);
  const lines = (await (await post({ ...request, stream: true })).text()).split('\n');
  const data = lines.filter((line) => line.startsWith('data: {')).map((line) => line.slice('data: '.length));
  expect(textOf(data.map((line) => JSON.parse(line) as Fields))).toBe(whole);
});
