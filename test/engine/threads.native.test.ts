/** The threads of a process: asleep between requests, and kept for the models that come. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../src/index.ts';

const MODEL = path.resolve(import.meta.dirname, '../../models/onpolicy-tiny.gguf');
const THREADS = 2;
const IDLE_MS = 1000;
const REQUEST = {
  messages: [{ role: 'user' as const, content: 'Hello' }],
  max_completion_tokens: 3,
  temperature: 0,
};

const open = (names: readonly string[]): Promise<Runtime> =>
  createRuntime({
    models: Object.fromEntries(names.map((name) => [name, { path: MODEL }])),
    threads: THREADS,
    contextSize: 256,
    gpu: false,
  });
const answer = (runtime: Runtime, model: string) => runtime.createCompletion({ ...REQUEST, model });

describe('threads', () => {
  it('sleep between requests', async () => {
    await using runtime = await open(['a']);
    await answer(runtime, 'a');
    await wait(50); // what follows an answer: statistics, garbage
    const before = process.cpuUsage();
    await wait(IDLE_MS);
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(0.02 * IDLE_MS);
  });

  it.skipIf(os.platform() !== 'linux')('of models that were closed serve the next ones', async () => {
    const count = () => fs.readdirSync('/proc/self/task').length;
    const use = async () => {
      await using runtime = await open(['a', 'b', 'c']);
      for (const name of ['a', 'b', 'c']) await answer(runtime, name);
    };
    await use();
    const before = count();
    for (let i = 0; i < 5; i++) await use();
    expect(count()).toBeLessThanOrEqual(before + THREADS); // one of the last runtime may still end
  });

  it('serve models that take turns, then compute at once, time after time', async () => {
    const names = ['a', 'b', 'c', 'd'];
    for (let time = 0; time < 20; time++) {
      await using runtime = await open(names);
      const alone = [];
      for (const name of names) alone.push(await answer(runtime, name));
      const atOnce = await Promise.all(
        Array.from({ length: 12 }, (_, i) => answer(runtime, names[i % names.length]!)),
      );
      for (const { choices } of [...alone, ...atOnce])
        expect(choices[0]!.message).toEqual(alone[0]!.choices[0]!.message);
    }
  });
});
