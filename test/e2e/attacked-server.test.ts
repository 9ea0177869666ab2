/** Bodies that are bombs, and grammars and schemas that are long to compile, sent to a server in its own process -> others are answered meanwhile. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import path from 'node:path';
import readline from 'node:readline';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import zlib from 'node:zlib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ROOT } from './program.ts';

const TOKEN = 'a-token-of-the-tests';
/** The longest time that another client may wait for its answer. 2 seconds are promised; a busy machine with few cores may take longer. */
const PATIENCE_MS = 10_000;
const ATTACK_MS = 8000;

let server: ChildProcess;
let url: string;

beforeAll(async () => {
  const model = path.join(ROOT, 'models', 'onpolicy-tiny.gguf');
  const words = ['serve', '--port', '0', '--token', TOKEN, '--model', model, '--gpu', 'off', '--json'];
  server = spawn(process.execPath, [path.join(ROOT, 'dist/apps/cli/index.js'), ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of readline.createInterface(server.stdout!)) {
    url = /"url": "(.*)"/.exec(line)?.[1] ?? '';
    if (url) break;
  }
}, 60_000);
afterAll(() => server.kill());

const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
const QUESTION = [{ role: 'user', content: 'What is the capital of Peru?' }];
const asking = (fields: object): string =>
  JSON.stringify({ messages: QUESTION, max_tokens: 16, temperature: 0, ...fields });

/** Sends a body, compressed or not, on a connection of its own. The status is 0 if the client leaves, or if the server closes it before the answer. */
async function post(
  body: string | Uint8Array,
  signal?: AbortSignal,
): Promise<[status: number, text: string]> {
  const request = http.request(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { ...headers, ...(typeof body !== 'string' && { 'content-encoding': 'gzip' }) },
    agent: false,
    ...(signal && { signal }),
  });
  request.end(body);
  try {
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    const answer = JSON.parse(await text(response)) as {
      choices?: [{ message: { content: string } }];
      error?: { code: string };
    };
    return [response.statusCode!, answer.choices?.[0].message.content ?? answer.error?.code ?? ''];
  } catch (error) {
    return [0, String(error)];
  }
}

const keys = <T>(count: number, value: (i: number) => T): Record<string, T> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`key_${i}`, value(i)]));
const schema = (value: object): string => asking({ structured_outputs: { json: value } });
const nullable = (rules: number): string =>
  [
    'root ::= r0',
    ...Array.from({ length: rules }, (_, i) => `r${i} ::= r${i + 1} r${i + 1} | ""`),
    `r${rules} ::= "x"`,
  ].join('\n');

let bomb: Uint8Array | undefined;
let unlike = 0;
/** By name: bodies of an attack; `count`: so many at once. No two specifications are alike, so that none is remembered. */
const ATTACKS: Record<string, { count: number; body: () => string | Uint8Array }> = {
  'five bodies of 63 KiB that hold 63 MiB': {
    count: 5,
    body: () => (bomb ??= zlib.gzipSync(`{"messages":[${'{},'.repeat(21 * 2 ** 20)}{}]}`)),
  },
  'grammars of 40 rules that are nullable': {
    count: 4,
    body: () => asking({ structured_outputs: { grammar: `${nullable(40)}\nr${++unlike + 99} ::= "y"` } }),
  },
  'schemas of 150,000 $defs': {
    count: 2,
    body: () =>
      schema({ title: `${++unlike}`, $defs: keys(150_000, () => ({ type: 'string' })), type: 'null' }),
  },
  'schemas of 20,000 optional properties': {
    count: 4,
    body: () =>
      schema({ title: `${++unlike}`, type: 'object', properties: keys(20_000, () => ({ type: 'string' })) }),
  },
  'schemas of 5,000 properties in any order': {
    count: 4,
    body: () =>
      asking({
        structured_outputs: {
          json: { title: `${++unlike}`, type: 'object', properties: keys(5000, () => true) },
          property_order: 'any',
        },
      }),
  },
};

/** Other clients: a body, and what is in its answer. */
const OTHERS: Record<string, () => [body: string, answer: RegExp]> = {
  plain: () => [asking({}), /^The capital of Peru is Lima/],
  'of a known schema': () => [schema({ type: 'object', maxProperties: 0 }), /^\{\s*\}$/],
  'of a new schema': () => {
    const word = `w${++unlike}`;
    return [schema({ enum: [word] }), new RegExp(`^"${word}"$`)];
  },
};

it.each(Object.entries(ATTACKS))('%s', { timeout: 240_000 }, async (name, { count, body }) => {
  for (const other of Object.values(OTHERS)) expect((await post(other()[0]))[0]).toBe(200);
  const bodies = Array.from({ length: 3 * count }, body);
  const end = AbortSignal.timeout(ATTACK_MS);
  const statuses = new Map<number, number>();
  const attack = async (at: number): Promise<void> => {
    for (let i = at; !end.aborted; i = (i + count) % bodies.length) {
      // Some of them leave, and what they asked for must end with them.
      const signal = i % 3 === 2 ? AbortSignal.any([end, AbortSignal.timeout(200)]) : end;
      const [status] = await post(bodies[i]!, signal);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  const ask = async (kind: string): Promise<[kind: string, answers: number, longestMs: number]> => {
    const waits: number[] = [];
    while (!end.aborted) {
      const [wanted, answer] = OTHERS[kind]!();
      const startMs = performance.now();
      const [status, content] = await post(wanted);
      waits.push(performance.now() - startMs);
      expect([status, content]).toEqual([200, expect.stringMatching(answer)]);
      await sleep(20);
    }
    return [kind, waits.length, Math.round(Math.max(...waits))];
  };
  const attacks = Array.from({ length: count }, (_, i) => attack(i));
  const others = await Promise.all(Object.keys(OTHERS).map(ask));
  await Promise.all(attacks);
  process.stderr.write(`${name}: ${JSON.stringify({ statuses: [...statuses], others })}\n`);
  for (const [kind, answers, longestMs] of others) {
    expect(longestMs, `${kind}, ms`).toBeLessThan(PATIENCE_MS);
    expect(answers).toBeGreaterThan(1);
  }
  expect(server.exitCode).toBeNull();
});
