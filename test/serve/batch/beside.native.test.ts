/** The embedded model with a full batch -> other requests as if they were alone, and a batch that goes on behind them. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';

const rows = (count: number) =>
  Array.from({ length: count }, (_, i) => ({
    messages: [{ role: 'user', content: `Tell me a story about ${i}.` }],
    max_tokens: 200,
    ignore_eos: true,
  }));

const TOKENS = 60;
/** Steps that the batch may have before the chat is looked at, and after its last token. */
const BETWEEN = 15;

async function open(more = {}): Promise<Runtime> {
  const runtime = await createRuntime({ threads: 1, maxSequences: 16, ...more });
  onTestFinished(() => runtime.close());
  return runtime;
}

/** Steps until a chat's first token, and steps of the rest of it. */
async function stepsOfChat(runtime: Runtime): Promise<{ first: number; rest: number; text: string }> {
  const messages = [{ role: 'user' as const, content: 'Tell me a story.' }];
  const before = runtime.stats().steps;
  let first = 0;
  let text = '';
  for await (const { choices } of await runtime.createCompletion({
    messages,
    temperature: 0,
    max_tokens: TOKENS,
    ignore_eos: true,
    stream: true,
    speculation: false,
  })) {
    text += choices[0]?.delta.content ?? '';
    if (text !== '') first ||= runtime.stats().steps - before;
  }
  return { first, rest: runtime.stats().steps - before - first, text };
}

describe('a chat beside a full batch', () => {
  it('has its tokens in as many steps as alone, in steps that compute nothing else', async () => {
    const alone = await stepsOfChat(await open());
    const runtime = await open();
    const stop = new AbortController();
    const run = runtime.batch(rows(200), { concurrency: 32, signal: stop.signal });
    run.done.catch(() => {});
    await expect.poll(() => runtime.stats().running, { interval: 2, timeout: 20_000 }).toBe(16);
    const generated = runtime.stats().generatedTokens;
    const beside = await stepsOfChat(runtime);
    expect(beside.text).toBe(alone.text);
    expect(beside.first + beside.rest).toBeLessThanOrEqual(alone.first + alone.rest + BETWEEN);
    const others = runtime.stats().generatedTokens - generated - TOKENS;
    expect(others).toBeLessThanOrEqual(16 * BETWEEN); // beside it they would have 16 * TOKENS
    stop.abort();
    await expect(run.done).rejects.toMatchObject({ code: 'ABORTED' });
  });

  it('costs the batch nothing but time', async () => {
    const runtime = await open({ deterministic: true });
    const asked = rows(12).map((row) => ({ ...row, max_tokens: 40 }));
    const texts = async (chats: number) => {
      const found: string[] = [];
      const run = (async () => {
        for await (const row of runtime.batch(asked)) {
          const { choices } = row.response!.body as { choices: { message: { content: string } }[] };
          found.push(`${row.custom_id} ${choices[0]!.message.content}`);
        }
      })();
      for (let i = 0; i < chats; i++) await stepsOfChat(runtime);
      await run;
      return found.toSorted();
    };
    const alone = await texts(0);
    expect(alone.length).toBe(12);
    expect(await texts(6)).toEqual(alone);
  });

  it('is an ordinary neighbour with background: false', async () => {
    const runtime = await open();
    const run = runtime.batch(rows(8), { background: false }).done;
    await expect.poll(() => runtime.stats().running, { interval: 2 }).toBe(8);
    const before = runtime.stats().generatedTokens;
    const { rest, first } = await stepsOfChat(runtime);
    expect(runtime.stats().generatedTokens - before).toBeGreaterThan(4 * (rest + first));
    await run;
  });
});
