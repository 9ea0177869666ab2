/** Many model files under one memory budget, with the embedded model. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { EMBEDDED_MODEL } from '../../src/models/named-models.ts';
import type { RuntimeOptions } from '../../src/protocol/index.ts';
import type { ChatCompletionStream } from '../../src/protocol/service/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-residency-'));
const NAMES = Array.from({ length: 6 }, (_, i) => `m${i}`);
const models: Record<string, string> = {};
const question = {
  messages: [{ role: 'user', content: 'What is the capital of Peru?' }],
  temperature: 0,
} as const;
const LIMITS = { threads: 1, contextSize: 256, maxSequences: 2, gpu: false } as const;
let oneBytes = 0;

beforeAll(async () => {
  for (const name of NAMES) {
    models[name] = path.join(folder, `${name}.gguf`);
    fs.copyFileSync(EMBEDDED_MODEL, models[name]!);
  }
  await using runtime = await open({});
  await ask(runtime, 'm0');
  oneBytes = runtime.loaded()[0]!.memory!.total;
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

const open = (options: RuntimeOptions): Promise<Runtime> => createRuntime({ ...LIMITS, models, ...options });

async function ask(runtime: Runtime, model: string, more: object = {}): Promise<string | null | undefined> {
  const answer = await runtime.createCompletion({ ...question, model, ...more, stream: false });
  return answer.choices[0]!.message.content;
}

const loadedNames = (runtime: Runtime): string[] =>
  runtime.loaded().map(({ path: file }) => path.basename(file, '.gguf'));

describe('a memory budget', () => {
  it('holds few of many models, which answer as if they were all there', async () => {
    const loads: string[] = [];
    const onProgress = (model: string, fraction: number, phase: string): void => {
      if (phase === 'load' && fraction === 1) loads.push(model);
    };
    await using runtime = await open({ memory: { budget: 2.5 * oneBytes }, onProgress });
    let seed = 7;
    const work = async (): Promise<void> => {
      for (let i = 0; i < 15; i++) {
        seed = (seed * 16_807) % 2_147_483_647;
        expect(await ask(runtime, NAMES[seed % NAMES.length]!)).toBe('The capital of Peru is Lima.');
        const held = runtime.loaded().filter(({ state }) => state !== 'waiting');
        expect(held.length).toBeLessThanOrEqual(2);
        expect(new Set(held.map((one) => one.path)).size).toBe(held.length);
      }
    };
    await Promise.all([work(), work(), work(), work()]);
    expect(loads.length).toBeGreaterThan(6);
    expect(runtime.stats().generatedTokens).toBeGreaterThanOrEqual(60 * 7); // those of unloaded models count on
  });

  it('refuses a model that can never fit, with figures, and loads others', async () => {
    const large = { path: models['m1']!, maxSequences: 200 };
    await using runtime = await open({ memory: { budget: 1.5 * oneBytes }, models: { ...models, large } });
    const refused = ask(runtime, 'large');
    await expect(refused).rejects.toMatchObject({ code: 'OUT_OF_MEMORY', status: 503 });
    await expect(refused).rejects.toThrow(
      /takes \d+ MiB \(weights 3 MiB, cache \d+ MiB, compute \d+ MiB\); the budget/,
    );
    expect(await ask(runtime, 'm0')).toContain('Lima');
  });

  it('loads a model once for requests that come at the same time', async () => {
    const loads: string[] = [];
    await using runtime = await open({
      onProgress: (model, fraction) => void (fraction === 1 && loads.push(model)),
    });
    await Promise.all(Array.from({ length: 8 }, () => ask(runtime, 'm3')));
    expect(loads).toEqual([models['m3']]);
  });

  it('keeps a model whose answer is being read, and says who waits', async () => {
    await using runtime = await open({ memory: { budget: 1.5 * oneBytes } });
    const long = {
      ...question,
      model: 'm0',
      stream: true,
      stream_options: { include_usage: true },
      ignore_eos: true,
      max_tokens: 100,
      speculation: false,
    } as const;
    const stream: ChatCompletionStream = await runtime.createCompletion(long);
    const other = ask(runtime, 'm1');
    let tokens: number | undefined;
    let states: string[] = [];
    for await (const { usage } of stream) {
      tokens = usage?.completion_tokens;
      if (!states.includes('leaving')) states = runtime.loaded().map(({ state }) => state);
    }
    expect(tokens).toBe(100);
    expect(states).toEqual(['leaving', 'waiting']);
    expect(await other).toContain('Lima');
    expect(loadedNames(runtime)).toEqual(['m1']);
  });
});

describe('unload', () => {
  it('frees a model by its name, once, and the next request loads it', async () => {
    await using runtime = await open({});
    expect(await runtime.unload('m0')).toBe(false);
    await ask(runtime, 'm0');
    expect(runtime.loaded()).toMatchObject([
      { path: models['m0'], state: 'ready', progress: 1, requests: 0 },
    ]);
    expect(await Promise.all([runtime.unload('m0'), runtime.unload('m0')])).toEqual([true, true]);
    expect(runtime.loaded()).toEqual([]);
    expect(await ask(runtime, 'm0')).toContain('Lima');
  });

  it('waits for requests that run', async () => {
    await using runtime = await open({});
    await ask(runtime, 'm0');
    const answers = Promise.all([ask(runtime, 'm0'), ask(runtime, 'm0')]);
    await new Promise((resolve) => setImmediate(resolve));
    const unloaded = runtime.unload('m0');
    expect(await answers).toEqual(Array(2).fill('The capital of Peru is Lima.'));
    expect(await unloaded).toBe(true);
  });

  it('refuses what is no name', async () => {
    await using runtime = await open({});
    await expect(runtime.unload(3 as never)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      param: 'model',
    });
  });
});

describe('a model that nobody asks for', () => {
  it('keep_alive says how long it stays', async () => {
    await using runtime = await open({ memory: { idleMs: 3_600_000 } });
    await ask(runtime, 'm0', { keep_alive: 0 });
    await vi.waitFor(() => expect(loadedNames(runtime)).toEqual([]));
    await ask(runtime, 'm1', { keep_alive: -1 });
    expect(loadedNames(runtime)).toEqual(['m1']);
  });

  it.each<[string, unknown]>([
    ['memory: expected an object, got 3', 3],
    ['memory.budget: expected an integer >= 1, got 0', { budget: 0 }],
    ['memory.idleMs: expected an integer >= 0 or null, got -1', { idleMs: -1 }],
    ['memory.budgetBytes: not a field of memory', { budgetBytes: 1 }],
  ])('%s', async (message, memory) => {
    await expect(open({ memory: memory as never })).rejects.toThrow(message);
  });
});
