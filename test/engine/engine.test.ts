import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { Listener } from '../../src/engine/delivery.ts';
import { Engine } from '../../src/engine/engine.ts';
import { type Group, type SavedPrompt, Sequence } from '../../src/engine/sequence.ts';
import { CheckingBackend, type CheckingOptions } from '../fakes/checking-backend.ts';
import {
  expected,
  expectedBeams,
  type Request,
  run,
  simple,
  turns,
  VOCAB_SIZE,
} from '../fakes/engine-requests.ts';
import { fakeSampler } from '../fakes/fake-sampler.ts';

const OPTIONS: CheckingOptions = {
  kvTokens: 256,
  slotCount: 8,
  batchTokens: 16,
  isKvUnified: true,
  rollbackTokens: Infinity,
  windowTokens: 0,
  rowTile: 1,
  vocabSize: VOCAB_SIZE,
};

const request = fc.record<Request>({
  // few different tokens, so that prompts share beginnings
  prompt: fc.array(fc.integer({ min: 0, max: 1 }), { minLength: 1, maxLength: 20 }),
  n: fc.integer({ min: 1, max: 5 }),
  outputTokens: fc.integer({ min: 1, max: 10 }),
  salt: fc.constantFrom('', '', 'a'),
  adapter: fc.constantFrom(0, 0, 1, 2),
  priority: fc.integer({ min: -1, max: 1 }),
  background: fc.boolean(),
  abortAfter: fc.option(fc.integer({ min: 1, max: 9 })),
  scores: fc.boolean(),
  hooked: fc.boolean(),
  beams: fc.boolean(),
  forced: fc.constantFrom(0, 0, 1, 6),
  drafts: fc.constantFrom(null, 0, 5, 7, 8),
  delay: fc.integer({ min: 0, max: 30 }),
});

describe('Engine', () => {
  it.each([
    ['a unified KV cache', { isKvUnified: true, kvTokens: 40, outputRows: 8 }],
    ['a roomy unified one', { isKvUnified: true, kvTokens: 400 }],
    ['a non-unified one', { isKvUnified: false, kvTokens: 8 * 32 }],
    [
      'fewer tokens in a step than sequences',
      { isKvUnified: true, kvTokens: 400, batchTokens: 5, outputRows: 16 },
    ],
    ['recurrent state', { isKvUnified: true, rollbackTokens: 0, kvTokens: 60 }],
    ['recurrent state that can be taken back', { isKvUnified: true, rollbackTokens: 3, kvTokens: 60 }],
  ] as [string, Partial<CheckingOptions>][])(
    'gives every request its tokens whatever else runs: %s',
    async (_, layout) => {
      let [drafted, accepted] = [0, 0];
      await fc.assert(
        fc.asyncProperty(
          fc.array(request, { minLength: 1, maxLength: 12 }),
          fc.boolean(),
          fc.boolean(),
          fc.constantFrom(1, 4),
          fc.infiniteStream(fc.integer({ min: 0, max: 9 })),
          async (requests, prefixCache, byPriority, rowTile, dice) => {
            const backend = new CheckingBackend({
              ...OPTIONS,
              ...layout,
              rowTile,
              abortsStep: () => dice.next().value === 0,
              isFull: ({ sequences }) => new Set(sequences).size > 1 && dice.next().value === 0,
            });
            const engine = new Engine(backend, {
              maxRunning: 6,
              scheduling: byPriority ? 'priority' : 'fcfs',
              prefixCache,
            });
            await Promise.all([engine.loadAdapter('one'), engine.loadAdapter('two')]);
            const resets = Array.from({ length: dice.next().value! }, async () => {
              await turns(3 * dice.next().value!);
              expect(await engine.resetCache(true)).toBe(true);
            });
            const answers = await Promise.all(requests.map((each, arrival) => run(engine, each, arrival)));
            await Promise.all(resets);
            for (const [i, answer] of answers.entries()) {
              const given = requests[i]!;
              if (given.beams && answer[0]) expect(answer).toEqual(expectedBeams(given, backend.vocabSize));
              for (const tokens of given.beams ? [] : answer)
                if (tokens) expect(tokens).toEqual(expected(given, backend.vocabSize));
            }
            await turns(40); // what was taken out is freed when the step that runs has ended
            const stats = engine.stats();
            drafted += stats.draftedTokens;
            accepted += stats.acceptedTokens;
            expect([stats.running, stats.waiting, stats.kvTokensInUse]).toEqual([0, 0, 0]);
            if (!prefixCache) expect(stats.kvTokensCached).toBe(0);
            await engine.close();
          },
        ),
        { numRuns: 100 },
      );
      const drafts = layout.rollbackTokens !== 0;
      expect(accepted).toBeGreaterThan(drafts ? 50 : -1);
      expect(drafted - accepted).toBeGreaterThan(drafts ? 20 : -1);
      if (!drafts) expect(drafted).toBe(0);
    },
    60_000,
  );

  it('computes a shared prompt once for all choices', async () => {
    const backend = new CheckingBackend(OPTIONS);
    const engine = new Engine(backend, { maxRunning: 8, scheduling: 'fcfs', prefixCache: true });
    const prompt = Array.from({ length: 40 }, (_, i) => i);
    await run(engine, simple({ prompt, n: 4, outputTokens: 1 }), 0);
    expect(backend.computedTokens).toBe(40);
    expect(backend.steps).toBe(3); // 16 + 16 + 8 tokens; all four sample from the last
    await engine.close();
  });

  it('computes only what the prefix cache does not hold, and nothing across salts', async () => {
    const backend = new CheckingBackend(OPTIONS);
    const engine = new Engine(backend, { maxRunning: 8, scheduling: 'fcfs', prefixCache: true });
    const prompt = Array.from({ length: 40 }, (_, i) => i);
    const computed = async (each: Request, arrival: number): Promise<number> => {
      const before = backend.computedTokens;
      await run(engine, each, arrival);
      return backend.computedTokens - before;
    };
    expect(await computed(simple({ prompt, outputTokens: 1 }), 0)).toBe(40);
    expect(await computed(simple({ prompt: [...prompt, 7, 7], outputTokens: 1 }), 1)).toBe(2);
    expect(await computed(simple({ prompt, outputTokens: 1 }), 2)).toBe(1); // the last token is always computed
    expect(await computed(simple({ prompt, outputTokens: 1, salt: 's' }), 3)).toBe(40);
    expect(await computed(simple({ prompt, outputTokens: 1, salt: 's' }), 4)).toBe(1);
    await engine.close();
  });

  it.each([
    ['with its running sequences', true],
    ['unless sequences run', false],
  ])('empties the prefix cache: %s', async (_, preempt) => {
    const backend = new CheckingBackend({ ...OPTIONS, kvTokens: 400 });
    const engine = new Engine(backend, { maxRunning: 8, scheduling: 'fcfs', prefixCache: true });
    const prompt = Array.from({ length: 40 }, (_, i) => i);
    const first = simple({ prompt, outputTokens: 1 });
    await run(engine, first, 0);
    expect(engine.stats().kvTokensCached).toBeGreaterThan(0);
    const other = simple({ prompt: [5, 6, 7], outputTokens: 9 });
    const running = run(engine, other, 1);
    await turns(2);
    expect(engine.stats().running).toBe(1);
    expect(await engine.resetCache(preempt)).toBe(preempt);
    expect(await running).toEqual([expected(other, VOCAB_SIZE)]);
    const before = backend.computedTokens;
    await run(engine, first, 2);
    expect(backend.computedTokens - before).toBe(preempt ? 40 : 1);
    expect(await engine.resetCache(false)).toBe(true);
    expect(engine.stats()).toMatchObject({ kvTokensCached: 0, kvTokensInUse: 0 });
    await engine.close();
  });

  it('lets requests of one tick share a prefix that one of them is computing', async () => {
    const backend = new CheckingBackend({ ...OPTIONS, kvTokens: 400 });
    const engine = new Engine(backend, { maxRunning: 8, scheduling: 'fcfs', prefixCache: true });
    const prefix = Array.from({ length: 40 }, (_, i) => i);
    await Promise.all(
      [1, 2, 3, 4].map((i) => run(engine, simple({ prompt: [...prefix, i], outputTokens: 1 }), i)),
    );
    expect(backend.computedTokens).toBe(40 + 4);
    await engine.close();
  });

  it.each([
    ['of the background is cut short for another request', true, 60, true],
    ['of the background is not for one of its own', true, 60, false],
    ['of the background is for a few tokens, too', true, 20, true],
    ['of other requests is not', false, 60, true],
  ])('a step %s', async (_name, background, promptTokens, isOther) => {
    const backend = new CheckingBackend({ ...OPTIONS, batchTokens: 64 });
    const engine = new Engine(backend, { maxRunning: 8, scheduling: 'fcfs', prefixCache: true });
    const prompt = Array.from({ length: promptTokens }, (_, i) => i % 50);
    const first = simple({ prompt, background, outputTokens: 1 });
    const second = simple({ prompt: [49, 1], background: !isOther, outputTokens: 1 });
    const one = run(engine, first, 0);
    const cuts = vi.spyOn(backend, 'abortStep');
    for (let i = 0; i < 5; i++) await null; // its step runs
    const other = run(engine, second, 1);
    for (let i = 0; i < 5; i++) await null; // the other one is submitted
    const early = cuts.mock.calls.length;
    expect(await other).toEqual([expected(second, backend.vocabSize)]);
    expect(await one).toEqual([expected(first, backend.vocabSize)]);
    expect(early > 0).toBe(background && isOther);
    await engine.close();
  });

  it('gives forced tokens no place in a step that others have filled', async () => {
    const backend = new CheckingBackend({ ...OPTIONS, rowTile: 4, batchTokens: 5 }); // refuses more
    const engine = new Engine(backend, { maxRunning: 4, scheduling: 'priority', prefixCache: false });
    const plain = [simple({ prompt: [0], outputTokens: 12 }), simple({ prompt: [1], outputTokens: 12 })];
    const forced = simple({ prompt: [0, 0], forced: 6, outputTokens: 12, priority: 1 });
    const urgent = simple({ prompt: Array(20).fill(1), outputTokens: 1, delay: 2 });
    const requests = [...plain, forced, urgent];
    const answers = await Promise.all(requests.map((each, arrival) => run(engine, each, arrival)));
    for (const [i, each] of requests.entries())
      expect(answers[i]).toEqual([expected(each, backend.vocabSize)]);
    await engine.close();
  });

  it('leaves forced tokens that would begin another tile of rows to later steps', async () => {
    const stepTokens = async (rowTile: number): Promise<number[]> => {
      const backend = new CheckingBackend({ ...OPTIONS, rowTile });
      const engine = new Engine(backend, { maxRunning: 8, scheduling: 'fcfs', prefixCache: false });
      const plain = Array.from({ length: 3 }, (_, i) => simple({ prompt: [i], outputTokens: 12 }));
      const forced = simple({ prompt: [9], forced: 2, outputTokens: 12 });
      const answers = await Promise.all(
        [...plain, forced].map((each, arrival) => run(engine, each, arrival)),
      );
      for (const [i, each] of [...plain, forced].entries())
        expect(answers[i]).toEqual([expected(each, backend.vocabSize)]);
      await engine.close();
      return backend.stepTokens;
    };
    const untiled = await stepTokens(1);
    expect(Math.max(...untiled)).toBeGreaterThan(4);
    const tiled = await stepTokens(4);
    expect(Math.max(...tiled)).toBe(4);
    expect(tiled.reduce((sum, count) => sum + count)).toBe(untiled.reduce((sum, count) => sum + count));
  });

  it('serves lower priorities first under the priority policy', async () => {
    const order: number[] = [];
    const engine = new Engine(new CheckingBackend(OPTIONS), {
      maxRunning: 1,
      scheduling: 'priority',
      prefixCache: true,
    });
    await Promise.all(
      [0, 5, -5, 1].map((priority, arrival) =>
        run(engine, simple({ prompt: [9, priority + 10], priority }), arrival).then(() =>
          order.push(priority),
        ),
      ),
    );
    expect(order).toEqual([-5, 0, 1, 5]);
    await engine.close();
  });

  it('continues a saved prompt, and computes one that finds no room', async () => {
    const prompt = Array.from({ length: 40 }, (_, i) => i);
    const group: Group = {
      prompt: Int32Array.from(prompt),
      cacheKey: '0 k',
      adapter: 0,
      priority: 0,
      arrival: 0,
    };
    const saved: SavedPrompt = { state: null, tokens: 0 };
    const from = new Engine(new CheckingBackend(OPTIONS), {
      maxRunning: 8,
      scheduling: 'fcfs',
      prefixCache: true,
    });
    await new Promise<void>((resolve, reject) => {
      const listener: Listener = {
        onToken: () => {
          resolve();
          return true;
        },
        onComplete: () => {},
        onError: reject,
      };
      from.submit(new Sequence(group, 0, fakeSampler(), { savedPrompt: saved }), listener);
    });
    expect(saved.state).toEqual(Uint8Array.from(prompt.flatMap((id) => [id, 0])));
    await from.close();
    for (const [kvTokens, computed] of [
      [256, 1],
      [60, 40],
    ] as const) {
      const backend = new CheckingBackend({ ...OPTIONS, kvTokens });
      const to = new Engine(backend, { maxRunning: 8, scheduling: 'fcfs', prefixCache: true });
      const other =
        kvTokens === 60
          ? run(to, simple({ prompt: prompt.slice(0, 30).map((id) => 49 - id), outputTokens: 12 }), 0)
          : null;
      await turns(4);
      await to.adopt(group, group.prompt, saved.state!);
      await other;
      const before = backend.computedTokens;
      const request = simple({ prompt, outputTokens: 1, salt: 'k' });
      expect(await run(to, request, 1)).toEqual([expected(request, backend.vocabSize)]);
      expect(backend.computedTokens - before).toBe(computed);
      await expect(to.adopt(group, group.prompt, Uint8Array.of(255))).rejects.toMatchObject({
        code: 'KV_FULL',
      });
      expect(await run(to, request, 2)).toEqual([expected(request, backend.vocabSize)]);
      await to.close();
      await expect(to.adopt(group, group.prompt, saved.state!)).rejects.toMatchObject({ code: 'CLOSED' });
    }
  });

  it('lets adapters take turns, and shares nothing between them', async () => {
    const backend = new CheckingBackend({ ...OPTIONS, kvTokens: 400 });
    const engine = new Engine(backend, { maxRunning: 8, scheduling: 'fcfs', prefixCache: true });
    const adapters = [0, await engine.loadAdapter('one'), await engine.loadAdapter('two')];
    expect(new Set(adapters).size).toBe(3);
    const prompt = Array.from({ length: 10 }, (_, i) => i);
    const requests = adapters.map((adapter) => simple({ prompt, adapter, outputTokens: 20 }));
    const answers = await Promise.all(requests.map((each, arrival) => run(engine, each, arrival)));
    for (const [i, each] of requests.entries())
      expect(answers[i]).toEqual([expected(each, backend.vocabSize)]);
    expect(backend.computedTokens).toBe(3 * (10 + 19));
    expect(backend.turns.slice(0, 6)).toEqual([0, 1, 2, 0, 1, 2]);
    await engine.freeAdapter(adapters[1]!);
    await expect(engine.loadAdapter('')).rejects.toMatchObject({ code: 'MODEL_INVALID' });
    expect(await run(engine, requests[2]!, 3)).toEqual([expected(requests[2]!, backend.vocabSize)]);
    await engine.close();
    await expect(engine.loadAdapter('late')).rejects.toMatchObject({ code: 'CLOSED' });
    await engine.freeAdapter(adapters[2]!); // gone with the engine
  });

  it('lets a long prompt of one adapter in, however many short ones of another come', async () => {
    const backend = new CheckingBackend({ ...OPTIONS, kvTokens: 64 });
    const engine = new Engine(backend, { maxRunning: 4, scheduling: 'fcfs', prefixCache: false });
    const adapter = await engine.loadAdapter('one');
    const ended: string[] = [];
    const many = Array.from({ length: 30 }, (_, i) =>
      run(engine, simple({ prompt: [i, 1, 2, 3, 4, 5], outputTokens: 6 }), i < 4 ? i : i + 1).then(() =>
        ended.push('short'),
      ),
    );
    const long = run(engine, simple({ prompt: Array.from({ length: 50 }, (_, i) => i % 7), adapter }), 4);
    await Promise.all([...many, long.then(() => ended.push('long'))]);
    expect(ended.indexOf('long')).toBeLessThan(12);
    await engine.close();
  });

  it('fails what runs and what comes later with CLOSED', async () => {
    const engine = new Engine(new CheckingBackend(OPTIONS), {
      maxRunning: 1,
      scheduling: 'fcfs',
      prefixCache: true,
    });
    const running = run(engine, simple({ outputTokens: 100 }), 0);
    const waiting = run(engine, simple({ outputTokens: 100 }), 1);
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    const closed = engine.close();
    await expect(running).rejects.toMatchObject({ code: 'CLOSED' });
    await expect(waiting).rejects.toMatchObject({ code: 'CLOSED' });
    await closed;
    await engine.close();
    await expect(run(engine, simple(), 2)).rejects.toMatchObject({ code: 'CLOSED' });
  });

  it.each([true, false])(
    'fails what the cache has no room for, and goes on with the rest (prefixes cut: %s)',
    async (canCutCache) => {
      const backend = new CheckingBackend({
        ...OPTIONS,
        rollbackTokens: canCutCache ? Infinity : 0,
        isFull: ({ tokens }) => tokens.includes(13),
      });
      const engine = new Engine(backend, { maxRunning: 4, scheduling: 'fcfs', prefixCache: true });
      const good = [1, 2, 3].map((id) => simple({ prompt: [id, 2, 3], outputTokens: 1 }));
      const [first, bad, ...rest] = [good[0]!, simple({ prompt: [13, 4, 5], n: 2 }), good[1]!, good[2]!].map(
        (each, arrival) => run(engine, each, arrival),
      );
      await expect(bad).rejects.toMatchObject({ code: 'BACKEND_FAILED', message: 'no room' });
      expect(await Promise.all([first, ...rest])).toEqual(good.map((each) => [expected(each, VOCAB_SIZE)]));
      await turns(10);
      expect(engine.stats()).toMatchObject({ running: 0, waiting: 0, kvTokensInUse: 0 });
      expect(backend.steps).toBeLessThan(20);
      await engine.close();
    },
  );

  it('fails all requests of a backend that breaks, and says so to later ones', async () => {
    const backend = new CheckingBackend(OPTIONS);
    backend.step = async () => {
      throw Object.assign(new Error('lost the device'), { code: 'BACKEND_FAILED' });
    };
    const engine = new Engine(backend, { maxRunning: 2, scheduling: 'fcfs', prefixCache: true });
    await expect(run(engine, simple(), 0)).rejects.toMatchObject({
      code: 'BACKEND_FAILED',
      message: 'lost the device',
    });
    await expect(run(engine, simple(), 1)).rejects.toMatchObject({ code: 'BACKEND_FAILED' });
    await engine.close();
  });
});
