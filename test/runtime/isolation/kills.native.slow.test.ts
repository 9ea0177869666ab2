/** The engine's process, killed again and again in the middle of streams: each request ends, and the host stays as it is. What a token costs. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OnpolicyError } from '../../../src/errors.ts';
import type { ChatCompletionRequest } from '../../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { isGone, killEngine } from './children.ts';

/** How often it is killed: 100 with `ONPOLICY_KILLS=100`. */
const KILLS = Number(process.env['ONPOLICY_KILLS'] ?? 6);
const HOME = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-kills-'));
const PERU: ChatCompletionRequest = {
  messages: [{ role: 'user', content: 'What is the capital of Peru?' }],
  temperature: 0,
};
const STORY: ChatCompletionRequest = {
  messages: [{ role: 'user', content: 'Tell me a story.' }],
  ignore_eos: true,
};
const KILLED =
  /^the engine's process ended by signal SIGKILL while it used the default model; it starts again for the next request$/;

const openFiles = (): number => (process.platform === 'linux' ? fs.readdirSync('/proc/self/fd').length : 0);
const heapBytes = (): number => {
  global.gc!();
  return process.memoryUsage().heapUsed;
};

describe.skipIf(process.platform === 'win32')('an isolated runtime whose process is killed', () => {
  let runtime: Runtime;
  beforeAll(async () => {
    runtime = await createRuntime({ isolate: true, threads: 1, home: HOME });
  });
  afterAll(async () => {
    await runtime.close();
    fs.rmSync(HOME, { recursive: true });
  });

  /** Reads a stream to its end. */
  async function read(onContent: () => void): Promise<'answered' | OnpolicyError> {
    try {
      for await (const { choices } of await runtime.createCompletion({ ...STORY, stream: true }))
        if (choices[0]?.delta.content) onContent();
      return 'answered';
    } catch (error) {
      return error as OnpolicyError;
    }
  }

  it(`${KILLS} times in mid-stream`, { timeout: 60_000 + KILLS * 5000 }, async () => {
    const measured: { heap: number; files: number }[] = [];
    for (let kill = 0; kill < KILLS; kill++) {
      let pid = 0;
      const whole = runtime.createCompletion({ ...STORY, n: 2 }).catch((error: unknown) => error);
      const ends = await Promise.all([
        read(() => {
          pid ||= killEngine();
        }),
        read(() => {}),
        whole,
      ]);
      for (const end of ends) {
        expect(end).toBeInstanceOf(OnpolicyError);
        expect(end).toMatchObject({ code: 'BACKEND_FAILED', message: expect.stringMatching(KILLED) });
      }
      await isGone(pid);
      measured.push({ heap: heapBytes(), files: openFiles() });
    }
    const answer = await runtime.createCompletion({ ...PERU, stream: false });
    expect(answer.choices[0]!.message.content).toBe('The capital of Peru is Lima.');
    const [early, late] = [measured[Math.min(2, KILLS - 1)]!, measured.at(-1)!];
    process.stdout.write(`${JSON.stringify({ kills: KILLS, early, late })}\n`);
    expect(late.files).toBeLessThanOrEqual(early.files);
    expect(late.heap - early.heap).toBeLessThan(4e6);
  });
});

it('costs a streamed token less than 0.2 ms, or than the token itself', async () => {
  const TOKENS = 150;
  const usage = { stream_options: { include_usage: true } };
  const request = { ...STORY, ...usage, seed: 1, max_tokens: TOKENS, stream: true } as const;
  const runtimes = await Promise.all(
    [false, true].map((isolate) =>
      createRuntime({
        isolate,
        threads: 1,
        speculation: false,
        home: path.join(os.tmpdir(), 'onpolicy-none'),
      }),
    ),
  );
  const fastest = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]; // milliseconds per token; others use the machine, too
  for (let round = 0; round < 15; round++)
    for (const [i, runtime] of runtimes.entries()) {
      let tokens = 0;
      let startMs = 0;
      for await (const chunk of await runtime.createCompletion(request)) {
        startMs ||= performance.now();
        tokens = chunk.usage?.completion_tokens ?? tokens; // a chunk may hold several
      }
      expect(tokens).toBeGreaterThan(TOKENS / 2);
      fastest[i] = Math.min(fastest[i]!, (performance.now() - startMs) / (tokens - 1));
    }
  const [inProcess, isolated] = fastest.map((ms) => Number(ms.toFixed(4)));
  process.stdout.write(`${JSON.stringify({ 'ms per token': { inProcess, isolated } })}\n`);
  expect(isolated! - inProcess!).toBeLessThan(Math.max(0.2, inProcess!)); // a busy machine slows both
  await Promise.all(runtimes.map((runtime) => runtime.close()));
});
