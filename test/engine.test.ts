import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BeamRun } from '../src/beam-run.ts';
import { Engine, type Listener } from '../src/engine.ts';
import type { OnpolicyError } from '../src/errors.ts';
import { BeamSearch, type Hypothesis, stepsOf } from '../src/sampling/beam-search.ts';
import { LogitsHook } from '../src/sampling/logits-hook.ts';
import { PromptScores } from '../src/sampling/prompt-scores.ts';
import { type Group, type SavedPrompt, Sequence } from '../src/sequence.ts';
import type { StopRules } from '../src/text-out.ts';
import { byteTokenizer } from './fakes/byte-tokenizer.ts';
import {
  CheckingBackend,
  type CheckingOptions,
  fakeSampler,
  predictedCandidates,
  predictedToken,
} from './fakes/checking-backend.ts';

const OPTIONS: CheckingOptions = {
  kvTokens: 256,
  slotCount: 8,
  batchTokens: 16,
  sharesCells: true,
  canCutCache: true,
  vocabSize: 50,
};

/** A request of a random workload. */
type Request = {
  readonly prompt: number[];
  readonly n: number;
  readonly outputTokens: number;
  readonly salt: string;
  /** 0 to 2. */
  readonly adapter: number;
  readonly priority: number;
  /** Tokens after which the first choice is taken out, or null. */
  readonly abortAfter: number | null;
  /** Whether the prompt is scored. */
  readonly scores: boolean;
  /** Whether a hook turns every predicted token into the next one. */
  readonly hooked: boolean;
  /** Whether the answers are those of a beam search with n beams. */
  readonly beams: boolean;
  /** Steps of the event loop before it is submitted. */
  readonly delay: number;
};

/** Waits for so many turns of the event loop. */
async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Runs a request and resolves with the sampled tokens of every choice; null for one that was taken out. */
async function run(engine: Engine, request: Request, arrival: number): Promise<(number[] | null)[]> {
  await turns(request.delay);
  const group: Group = {
    prompt: Int32Array.from(request.prompt),
    cacheKey: request.salt,
    adapter: request.adapter,
    priority: request.priority,
    arrival,
  };
  if (request.beams) return await searchBeams(engine, request, group);
  const scores = request.scores ? new PromptScores(group.prompt, 1) : null;
  const answers = await Promise.all(
    Array.from(
      { length: request.n },
      (_, index) =>
        new Promise<number[] | null>((resolve, reject) => {
          const tokens: number[] = [];
          const sequence = new Sequence(group, index, fakeSampler(), {
            promptScores: index === 0 ? scores : null,
            hook: request.hooked ? new LogitsHook([takeNext], group.prompt, OPTIONS.vocabSize) : null,
          });
          const listener: Listener = {
            onToken(token) {
              tokens.push(token);
              if (index === 0 && tokens.length === request.abortAfter) {
                setImmediate(() => {
                  engine.remove(sequence);
                  resolve(null);
                });
                return false;
              }
              if (tokens.length >= request.outputTokens) resolve(tokens);
              return tokens.length >= request.outputTokens;
            },
            onComplete: () => reject(new Error('nothing is constrained here')),
            onError: (error: OnpolicyError) => reject(error),
          };
          engine.submit(sequence, listener);
        }),
    ),
  );
  if (scores && answers[0]) expectScores(request, scores);
  return answers;
}

/** The fake scores a token 0 when it is the predicted one, else -1, and names the prediction as the alternative. */
function expectScores({ prompt, adapter }: Request, scores: PromptScores): void {
  const entries = scores.entries(byteTokenizer);
  expect(entries[0]).toBeNull();
  expect(entries.length).toBe(prompt.length);
  for (const [at, token] of prompt.entries()) {
    if (at === 0) continue;
    const predicted = predictedToken(prompt.slice(0, at), OPTIONS.vocabSize, adapter);
    const missed = { [token]: expect.objectContaining({ logprob: -1, rank: 2 }) };
    expect(entries[at]).toEqual({ ...missed, [predicted]: expect.objectContaining({ logprob: 0, rank: 1 }) });
  }
}

const BEAM_RULES: StopRules = {
  stops: null,
  stopIds: new Set([3]),
  endIds: new Set(),
  eosId: -1,
  ignoreEos: false,
  minTokens: 0,
  maxTokens: 0,
  includeStop: false,
  skipSpecial: true,
  shownSpecials: new Set(),
  spacesBetween: true,
};

/** Runs a request as a beam search; it is taken out after `abortAfter` turns of the event loop. */
async function searchBeams(engine: Engine, request: Request, group: Group): Promise<(number[] | null)[]> {
  return await new Promise((resolve, reject) => {
    const run = new BeamRun({
      engine,
      group,
      tokenizer: byteTokenizer,
      sampler: fakeSampler(2 * request.n),
      forkSampler: () => fakeSampler(2 * request.n),
      rules: { ...BEAM_RULES, maxTokens: request.outputTokens },
      matcher: null,
      width: request.n,
      lengthPenalty: 1,
      onEnd: (result) => (result instanceof Error ? reject(result) : resolve(result.map(tokensOf))),
    });
    if (request.abortAfter !== null)
      void (async () => {
        await turns(request.abortAfter!);
        run.stop();
        resolve([null]);
      })();
  });
}

function tokensOf({ path }: Hypothesis): number[] {
  return stepsOf(path).map(({ token }) => token);
}

/** The same search on the fake's predictions, without an engine. */
function expectedBeams({ prompt, n, outputTokens, adapter }: Request, vocabSize: number): number[][] {
  const search = new BeamSearch({
    width: n,
    promptTokens: prompt.length,
    maxTokens: outputTokens,
    lengthPenalty: 1,
    endIds: BEAM_RULES.stopIds,
    eosId: -1,
    endsText: () => false,
  });
  while (!search.isDone)
    search.step(
      search.live.map((path) => {
        const tokens = [...prompt, ...stepsOf(path).map(({ token }) => token)];
        return predictedCandidates(tokens, vocabSize, 2 * n, adapter);
      }),
    );
  return search.results().map(tokensOf);
}

/** The fake's row holds a 1 at the predicted token: moves it to the next one, in place or in a copy. */
function takeNext(outputIds: Int32Array, logits: Float32Array): Float32Array | undefined {
  const next = (logits.indexOf(1) + 1) % logits.length;
  const row = outputIds.length % 2 === 0 ? logits : new Float32Array(logits.length);
  row.fill(0)[next] = 1;
  return row === logits ? undefined : row;
}

function expected(request: Request, vocabSize: number): number[] {
  const tokens = [...request.prompt];
  for (let i = 0; i < request.outputTokens; i++)
    tokens.push((predictedToken(tokens, vocabSize, request.adapter) + (request.hooked ? 1 : 0)) % vocabSize);
  return tokens.slice(request.prompt.length);
}

const request = fc.record<Request>({
  // few different tokens, so that prompts share beginnings
  prompt: fc.array(fc.integer({ min: 0, max: 1 }), { minLength: 1, maxLength: 20 }),
  n: fc.integer({ min: 1, max: 5 }),
  outputTokens: fc.integer({ min: 1, max: 10 }),
  salt: fc.constantFrom('', '', 'a'),
  adapter: fc.constantFrom(0, 0, 1, 2),
  priority: fc.integer({ min: -1, max: 1 }),
  abortAfter: fc.option(fc.integer({ min: 1, max: 9 })),
  scores: fc.boolean(),
  hooked: fc.boolean(),
  beams: fc.boolean(),
  delay: fc.integer({ min: 0, max: 30 }),
});

describe('Engine', () => {
  it.each([
    ['one pool of cells', { sharesCells: true, kvTokens: 40, outputRows: 8 }],
    ['one roomy pool', { sharesCells: true, kvTokens: 400 }],
    ['cells of their own', { sharesCells: false, kvTokens: 8 * 32 }],
    ['recurrent state', { sharesCells: true, canCutCache: false, kvTokens: 60 }],
  ])(
    'gives every request its tokens whatever else runs: %s',
    async (_, layout) => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(request, { minLength: 1, maxLength: 12 }),
          fc.boolean(),
          fc.boolean(),
          fc.infiniteStream(fc.integer({ min: 0, max: 9 })),
          async (requests, prefixCache, byPriority, dice) => {
            const backend = new CheckingBackend({
              ...OPTIONS,
              ...layout,
              abortsStep: () => dice.next().value === 0,
            });
            const engine = new Engine(backend, {
              maxRunning: 6,
              policy: byPriority ? 'priority' : 'fcfs',
              prefixCache,
            });
            await Promise.all([engine.loadAdapter('one'), engine.loadAdapter('two')]);
            const answers = await Promise.all(requests.map((each, arrival) => run(engine, each, arrival)));
            for (const [i, answer] of answers.entries()) {
              const given = requests[i]!;
              if (given.beams && answer[0]) expect(answer).toEqual(expectedBeams(given, backend.vocabSize));
              for (const tokens of given.beams ? [] : answer)
                if (tokens) expect(tokens).toEqual(expected(given, backend.vocabSize));
            }
            await turns(40); // what was taken out is freed when the step that runs has ended
            const stats = engine.stats();
            expect([stats.running, stats.waiting, stats.kvTokensInUse]).toEqual([0, 0, 0]);
            if (!prefixCache) expect(stats.kvTokensCached).toBe(0);
            await engine.close();
          },
        ),
        { numRuns: 100 },
      );
    },
    60_000,
  );

  const simple = (more: Partial<Request> = {}): Request => ({
    prompt: [1, 2, 3, 4],
    n: 1,
    outputTokens: 4,
    salt: '',
    adapter: 0,
    priority: 0,
    abortAfter: null,
    scores: false,
    hooked: false,
    beams: false,
    delay: 0,
    ...more,
  });

  it('computes a shared prompt once for all choices', async () => {
    const backend = new CheckingBackend(OPTIONS);
    const engine = new Engine(backend, { maxRunning: 8, policy: 'fcfs', prefixCache: true });
    const prompt = Array.from({ length: 40 }, (_, i) => i);
    await run(engine, simple({ prompt, n: 4, outputTokens: 1 }), 0);
    expect(backend.computedTokens).toBe(40);
    expect(backend.steps).toBe(3); // 16 + 16 + 8 tokens; all four sample from the last
    await engine.close();
  });

  it('computes only what the prefix cache does not hold, and nothing across salts', async () => {
    const backend = new CheckingBackend(OPTIONS);
    const engine = new Engine(backend, { maxRunning: 8, policy: 'fcfs', prefixCache: true });
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

  it('lets requests of one tick share a prefix that one of them is computing', async () => {
    const backend = new CheckingBackend({ ...OPTIONS, kvTokens: 400 });
    const engine = new Engine(backend, { maxRunning: 8, policy: 'fcfs', prefixCache: true });
    const prefix = Array.from({ length: 40 }, (_, i) => i);
    await Promise.all(
      [1, 2, 3, 4].map((i) => run(engine, simple({ prompt: [...prefix, i], outputTokens: 1 }), i)),
    );
    expect(backend.computedTokens).toBe(40 + 4);
    await engine.close();
  });

  it('serves lower priorities first under the priority policy', async () => {
    const order: number[] = [];
    const engine = new Engine(new CheckingBackend(OPTIONS), {
      maxRunning: 1,
      policy: 'priority',
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

  it('goes on from a saved prompt, and computes one that finds no room', async () => {
    const prompt = Array.from({ length: 40 }, (_, i) => i);
    const group: Group = {
      prompt: Int32Array.from(prompt),
      cacheKey: 'k',
      adapter: 0,
      priority: 0,
      arrival: 0,
    };
    const saved: SavedPrompt = { state: null };
    const from = new Engine(new CheckingBackend(OPTIONS), {
      maxRunning: 8,
      policy: 'fcfs',
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
      const to = new Engine(backend, { maxRunning: 8, policy: 'fcfs', prefixCache: true });
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
    const engine = new Engine(backend, { maxRunning: 8, policy: 'fcfs', prefixCache: true });
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
    const engine = new Engine(backend, { maxRunning: 4, policy: 'fcfs', prefixCache: false });
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
      policy: 'fcfs',
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

  it('fails all requests of a backend that breaks, and says so to later ones', async () => {
    const backend = new CheckingBackend(OPTIONS);
    backend.step = async () => {
      throw Object.assign(new Error('lost the device'), { code: 'BACKEND_FAILED' });
    };
    const engine = new Engine(backend, { maxRunning: 2, policy: 'fcfs', prefixCache: true });
    await expect(run(engine, simple(), 0)).rejects.toMatchObject({
      code: 'BACKEND_FAILED',
      message: 'lost the device',
    });
    await expect(run(engine, simple(), 1)).rejects.toMatchObject({ code: 'BACKEND_FAILED' });
    await engine.close();
  });
});
