/** The engine on caches that cannot be cut everywhere: it computes little again, and never continues from another state. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Engine } from '../../src/engine/engine.ts';
import type { Group } from '../../src/engine/sequence.ts';
import { CheckingBackend, type CheckingOptions } from '../fakes/checking-backend.ts';
import { expected, type Request, run, simple, turns, VOCAB_SIZE } from '../fakes/engine-requests.ts';

const OPTIONS: CheckingOptions = {
  kvTokens: 1000,
  slotCount: 8,
  batchTokens: 64,
  isKvUnified: true,
  rollbackTokens: 0,
  windowTokens: 0,
  rowTile: 1,
  vocabSize: VOCAB_SIZE,
};

const GROUP: Omit<Group, 'prompt'> = {
  adapter: 0,
  cacheKey: '0 k',
  priority: 0,
  arrival: 0,
};

/** A text that all requests begin with in part. */
const TEXT = Array.from({ length: 200 }, (_, i) => (i * 7) % VOCAB_SIZE);

const request = fc.record({
  shared: fc.integer({ min: 0, max: 160 }),
  own: fc.array(fc.integer({ min: 0, max: 49 }), { minLength: 1, maxLength: 60 }),
  n: fc.constantFrom(1, 1, 3),
  outputTokens: fc.integer({ min: 1, max: 12 }),
  places: fc.array(fc.integer({ min: 1, max: 200 }), { maxLength: 3 }),
  abortAfter: fc.option(fc.integer({ min: 1, max: 9 }), { freq: 3 }),
  adapter: fc.constantFrom(0, 0, 0, 1),
  drafts: fc.constantFrom(null, 5, 7),
  forced: fc.constantFrom(0, 0, 0, 3),
  delay: fc.integer({ min: 0, max: 60 }),
});

describe('the engine on caches that cannot be cut everywhere', () => {
  it.each<[string, Partial<CheckingOptions>]>([
    ['recurrent state', {}],
    ['recurrent state in a full cache', { kvTokens: 260 }],
    ['recurrent state that can be taken back', { rollbackTokens: 3 }],
    ['such state in cells of its own', { rollbackTokens: 3, isKvUnified: false, kvTokens: 8 * 260 }],
    ['a sliding window', { rollbackTokens: Infinity, windowTokens: 40 }],
    [
      'a sliding window in cells of its own',
      { rollbackTokens: Infinity, windowTokens: 40, isKvUnified: false, kvTokens: 8 * 260 },
    ],
  ])(
    'gives every request its tokens: %s',
    async (_, layout) => {
      let [restored, forgotten] = [0, 0];
      await fc.assert(
        fc.asyncProperty(
          fc.array(request, { minLength: 1, maxLength: 14 }),
          fc.constantFrom(0, 3, 1000),
          fc.infiniteStream(fc.integer({ min: 0, max: 29 })),
          async (requests, checkpointBytes, dice) => {
            const backend = new CheckingBackend({
              ...OPTIONS,
              ...layout,
              abortsStep: () => dice.next().value === 0,
              isFull: ({ sequences }) => new Set(sequences).size > 1 && dice.next().value === 0,
              runsAhead: () => dice.next().value! % 3 > 0,
            });
            const engine = new Engine(backend, {
              maxRunning: 4,
              scheduling: 'fcfs',
              prefixCache: true,
              checkpointBytes,
            });
            await engine.loadAdapter('one');
            await Promise.all(
              requests.map(async ({ shared, own, places, ...more }, arrival) => {
                const given = simple({ prompt: [...TEXT.slice(0, shared), ...own], ...more });
                const checkpoints = [...new Set(places)].filter((at) => at < given.prompt.length);
                const answers = await run(
                  engine,
                  given,
                  arrival,
                  checkpoints.sort((a, b) => a - b),
                );
                for (const tokens of answers) if (tokens) expect(tokens).toEqual(expected(given, VOCAB_SIZE));
              }),
            );
            await turns(40);
            expect(engine.stats()).toMatchObject({ running: 0, waiting: 0, kvTokensInUse: 0 });
            expect(backend.checkpoints).toBeLessThanOrEqual(checkpointBytes);
            restored += backend.restored;
            forgotten += backend.forgotten;
            await engine.close();
          },
        ),
        { numRuns: 60 },
      );
      expect(restored).toBeGreaterThan(20);
      expect(forgotten).toBeGreaterThan(20);
    },
    120_000,
  );

  it('goes on from a checkpoint where a sequence that ran ahead has yielded', async () => {
    const backend = new CheckingBackend(OPTIONS);
    const engine = new Engine(backend, {
      maxRunning: 1,
      scheduling: 'fcfs',
      prefixCache: true,
      checkpointBytes: 100,
    });
    const yielding = simple({ prompt: TEXT.slice(0, 100), outputTokens: 40, background: true });
    const answer = run(engine, yielding, 0, [95]);
    while (engine.stats().kvTokensInUse < 110) await turns(1);
    const other = simple({ prompt: TEXT.slice(50, 60), outputTokens: 3 });
    expect(await run(engine, other, 1, [])).toEqual([expected(other, VOCAB_SIZE)]);
    expect(await answer).toEqual([expected(yielding, VOCAB_SIZE)]);
    expect(backend.restored).toBe(1);
    expect(backend.computedTokens).toBeLessThan(100 + 40 + 13 + 60);
    await engine.close();
  });

  it.each<[string, Partial<CheckingOptions>]>([
    ['recurrent state', {}],
    ['a sliding window', { rollbackTokens: Infinity, windowTokens: 40 }],
  ])('computes what is new, and what is behind the last checkpoint: %s', async (_, layout) => {
    const backend = new CheckingBackend({ ...OPTIONS, ...layout });
    const engine = new Engine(backend, {
      maxRunning: 4,
      scheduling: 'fcfs',
      prefixCache: true,
      checkpointBytes: 100,
    });
    let arrivals = 0;
    const computed = async (given: Request, checkpoints: number[] = []): Promise<number> => {
      const before = backend.computedTokens;
      const [answer] = await run(engine, given, arrivals++, checkpoints);
      expect(answer).toEqual(expected(given, VOCAB_SIZE));
      return backend.computedTokens - before;
    };
    const first = TEXT.slice(0, 100);
    expect(await computed(simple({ prompt: first, outputTokens: 1 }), [50, 60, 95])).toBe(100);
    expect(await computed(simple({ prompt: first, outputTokens: 1 }))).toBe(5);
    expect(await computed(simple({ prompt: [...first, 7, 7], outputTokens: 1 }))).toBe(2);
    expect(await computed(simple({ prompt: [...first.slice(0, 70), 8, 8], outputTokens: 1 }))).toBe(22); // one at 60 would have been too near to 50
    // If two prompts diverge at an unmarked place, the second leaves a checkpoint for the third.
    const other = Array.from({ length: 90 }, (_, i) => (i * 3 + 1) % VOCAB_SIZE);
    expect(await computed(simple({ prompt: [...other, 1], outputTokens: 1 }))).toBe(91);
    expect(await computed(simple({ prompt: [...other, 2], outputTokens: 1 }))).toBe(91);
    expect(await computed(simple({ prompt: [...other, 3], outputTokens: 1 }))).toBe(1);
    await engine.close();
  });

  it('cuts no cache that was loaded, where only the cells of a window are saved', async () => {
    const backend = new CheckingBackend({ ...OPTIONS, rollbackTokens: Infinity, savedWindow: 40 });
    const engine = new Engine(backend, { maxRunning: 4, scheduling: 'fcfs', prefixCache: true });
    const prompt = Int32Array.from(TEXT.slice(0, 100));
    const state = Uint8Array.from([...prompt].flatMap((id) => [id, 0]));
    await engine.adopt({ ...GROUP, prompt }, prompt, state);
    await expect(engine.adopt({ ...GROUP, prompt: prompt.subarray(0, 60) }, prompt, state)).resolves.toBe(
      undefined,
    );
    const computed = async (given: number[], arrival: number): Promise<number> => {
      const before = backend.computedTokens;
      const request = simple({ prompt: given, outputTokens: 1, salt: 'k' });
      expect(await run(engine, request, arrival)).toEqual([expected(request, VOCAB_SIZE)]);
      return backend.computedTokens - before;
    };
    expect(await computed([...prompt], 0)).toBe(1);
    expect(await computed([...prompt.subarray(0, 80), 7, 7], 1)).toBe(82);
    expect(await computed([...prompt, 8, 8], 2)).toBe(2);
    expect(await computed([...prompt.subarray(0, 70), 9], 3)).toBe(1); // cut from the one that was computed here
    await engine.close();
  });
});
