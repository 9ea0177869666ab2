/** Requests to a pool -> the member that answers: affinity, failed members, running requests. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { OnpolicyError } from '../../../src/errors.ts';
import type { ChatCompletionRequest, TextCompletionRequest } from '../../../src/protocol/index.ts';
import type { Completions, Service } from '../../../src/protocol/service/index.ts';
import { TextCompletionStream } from '../../../src/protocol/service/index.ts';
import { connect, createPool, type PoolOptions, type Server, serve } from '../../../src/serve/http/index.ts';
import { createMemoryService, type MemoryService } from '../../fakes/memory-service.ts';

const ask = (content: string): ChatCompletionRequest => ({ messages: [{ role: 'user', content }] });
const countOf = (service: MemoryService): number =>
  service.calls.filter((call) => call === 'createCompletion').length;

async function read(service: Service, request: ChatCompletionRequest): Promise<string> {
  let text = '';
  for await (const { choices } of await service.createCompletion({ ...request, stream: true }))
    text += choices[0]?.delta.content ?? '';
  return text;
}

describe('requests', () => {
  it('are spread over those with least to do', async () => {
    const members = [1, 2, 3, 4].map(() => createMemoryService({ pieceMs: 5 }));
    const pool = createPool(members);
    await Promise.all(Array.from({ length: 40 }, (_, i) => pool.createCompletion(ask(`${i}`))));
    expect(members.map(countOf)).toEqual([10, 10, 10, 10]);
  });

  it('of a conversation stay with the member that knows it', async () => {
    const members = [1, 2, 3, 4].map(() => createMemoryService());
    const pool = createPool(members);
    for (let i = 0; i < 8; i++) {
      const before = members.map(countOf);
      let messages = ask(`I am number ${i}`).messages;
      for (let turn = 0; turn < 5; turn++) {
        await pool.createCompletion({ messages });
        messages = [...messages, { role: 'assistant', content: 'Hi' }, { role: 'user', content: `${turn}` }];
      }
      const asked = members.map((member, m) => countOf(member) - before[m]!);
      expect(asked.toSorted()).toEqual([0, 0, 0, 5]);
    }
  });

  it.each([
    ['a text', (i: number) => `The report of number ${i} begins here. `.repeat(20)],
    ['items', (i: number) => [{ role: 'user' as const, content: `The report of number ${i}.` }]],
  ])('of questions about %s stay with the member that has computed it', async (_, inputOf) => {
    const asked: number[] = [0, 0, 0];
    const members = asked.map((_, m) =>
      Object.assign(createMemoryService(), {
        decide: async () => {
          asked[m]! += 1;
          return { model: 'm', answers: [], usage: {} };
        },
      }),
    );
    const pool = createPool(members as never);
    for (let i = 0; i < 6; i++) {
      const before = [...asked];
      for (let k = 0; k < 4; k++)
        await pool.decide!({
          input: inputOf(i),
          questions: [{ type: 'predicate', instructions: `Is it ${k}?` }],
        });
      expect(asked.map((count, m) => count - before[m]!).toSorted()).toEqual([0, 0, 4]);
    }
  });

  it('leave a member that has far more to do than others', async () => {
    const members = [1, 2].map(() => createMemoryService({ pieceMs: 20 }));
    const pool = createPool(members);
    await pool.createCompletion(ask('same'));
    await Promise.all(Array.from({ length: 64 }, () => pool.createCompletion(ask('same'))));
    expect(Math.min(...members.map(countOf))).toBeGreaterThan(15);
  });

  it('come over HTTP to a pool whose members only answer requests', async () => {
    const { createCompletion, close, [Symbol.asyncDispose]: dispose } = createMemoryService();
    const pool = createPool([{ createCompletion, close, [Symbol.asyncDispose]: dispose }]);
    const server = await serve(pool, { graceMs: 0 });
    onTestFinished(() => server.close());
    const answer = await connect({ baseUrl: server.url }).createCompletion(ask('hello'));
    expect(answer).toMatchObject({ choices: [{ message: { content: 'hello' } }] });
    await expect(connect({ baseUrl: server.url }).models.list()).rejects.toMatchObject({
      code: 'UNSUPPORTED',
    });
  });

  it('that are faulty are refused by the pool, and nobody is left out for it', async () => {
    const members = [1, 2].map(() => createMemoryService());
    const pool = createPool(members);
    for (const request of [{}, null, { messages: 5 }, { ...ask('x'), n: 0 }])
      await expect(pool.createCompletion(request as never)).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
      });
    expect(members.map(countOf)).toEqual([0, 0]);
  });

  it('for a model go to who has it', async () => {
    const members = [createMemoryService(), createMemoryService()];
    const { id: model } = await members[1]!.models.create({ base_model: 'x' });
    const pool = createPool(members);
    for (let i = 0; i < 4; i++) await pool.createCompletion({ ...ask(`${i}`), model });
    await expect(pool.createCompletion({ ...ask('x'), model: 'none' })).rejects.toMatchObject({
      code: 'MODEL_NOT_FOUND',
    });
  });
});

describe('text completions', () => {
  const answering = (name: string, asked: string[]): Completions => {
    const createTextCompletion = async ({ prompt, stream }: TextCompletionRequest): Promise<unknown> => {
      asked.push(`${name} ${String(prompt).length}`);
      if (prompt === 'down') throw new OnpolicyError('NETWORK_FAILED', 'no');
      if (!stream) return { choices: [{ text: name }] };
      return new TextCompletionStream(
        (async function* () {
          yield { choices: [{ text: name }] } as never;
        })(),
        () => {},
      );
    };
    return { ...createMemoryService(), createTextCompletion } as unknown as Completions;
  };

  it('go to members that have them, those that continue a text to the same one', async () => {
    const asked: string[] = [];
    const pool = createPool([createMemoryService(), answering('a', asked), answering('b', asked)]);
    const text = 'word '.repeat(200);
    for (let turn = 1; turn < 6; turn++)
      await pool.createTextCompletion!({ prompt: text + 'more '.repeat(turn) });
    expect(new Set(asked.map((one) => one[0])).size).toBe(1);
    const chunks = [];
    for await (const chunk of await pool.createTextCompletion!({ prompt: 'x', stream: true }))
      chunks.push(chunk);
    expect(chunks).toHaveLength(1);
    await expect(pool.createTextCompletion!({ prompt: 'down' })).rejects.toMatchObject({
      code: 'NETWORK_FAILED',
    });
    expect(
      asked
        .slice(-2)
        .map((one) => one[0])
        .sort(),
    ).toEqual(['a', 'b']);
  });

  it('are refused where no member has them', async () => {
    const pool = createPool([createMemoryService()]);
    await expect(pool.createTextCompletion!({ prompt: 'x' })).rejects.toMatchObject({ code: 'UNSUPPORTED' });
  });
});

it('embeddings go to members that have them, the least busy first', async () => {
  const asked: string[] = [];
  const embedding = (name: string): Completions => {
    const createEmbeddings = async (): Promise<unknown> => {
      asked.push(name);
      return { data: [] };
    };
    return { ...createMemoryService(), createEmbeddings } as unknown as Completions;
  };
  const pool = createPool([createMemoryService(), embedding('a'), embedding('b')]);
  for (let i = 0; i < 4; i++) await pool.createEmbeddings!({ input: 'x' });
  expect(asked.toSorted()).toEqual(['a', 'a', 'b', 'b']);
  const none = createPool([createMemoryService()]);
  await expect(none.createEmbeddings!({ input: 'x' })).rejects.toMatchObject({ code: 'UNSUPPORTED' });
  const ranking = none.rerank!({ query: 'x', documents: ['y'] });
  await expect(ranking).rejects.toMatchObject({
    code: 'UNSUPPORTED',
    message: expect.stringContaining('rankings'),
  });
});

describe('a member that cannot be reached', () => {
  it('is left out, and comes back', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    vi.advanceTimersByTime(1); // a member has never failed at time 0
    onTestFinished(() => void vi.useRealTimers());
    const steady = createMemoryService();
    const flaky = createMemoryService();
    let isDown = true;
    let tried = 0;
    const gate: Service = {
      ...flaky,
      createCompletion: ((request: never) => {
        tried += 1;
        if (isDown) throw new OnpolicyError('NETWORK_FAILED', 'gone');
        return flaky.createCompletion(request);
      }) as never,
    };
    const pool = createPool([gate, steady], { retryMs: 30 });
    for (let i = 0; i < 20; i++) await pool.createCompletion(ask(`a${i}`));
    expect(countOf(steady)).toBe(20); // each one answered
    expect(tried).toBe(1); // and only the first went the long way
    vi.advanceTimersByTime(30);
    await pool.createCompletion(ask('b'));
    await pool.createCompletion(ask('c'));
    expect(tried).toBe(2);
    isDown = false;
    vi.advanceTimersByTime(60);
    for (let i = 0; i < 20; i++) await pool.createCompletion(ask(`d${i}`));
    expect(countOf(flaky)).toBe(10);
  });

  it('is asked all the same when there is no other', async () => {
    const pool = createPool([connect({ baseUrl: 'http://127.0.0.1:1', maxRetries: 0 })]);
    for (let i = 0; i < 2; i++)
      await expect(pool.createCompletion(ask('x'))).rejects.toMatchObject({ code: 'NETWORK_FAILED' });
  });
});

describe('a member that says when to try again', () => {
  /** Counts calls, and says so as often as asked. */
  function busy(retryAfterMs: number, often: number) {
    const open = createMemoryService();
    const asked = { count: 0 };
    const createCompletion = (request: never): unknown => {
      asked.count += 1;
      if (asked.count <= often) throw new OnpolicyError('OVERLOADED', 'later', { retryAfterMs });
      return open.createCompletion(request);
    };
    return { asked, service: { ...open, createCompletion } as Service };
  }
  const overloaded = { code: 'OVERLOADED', retryAfterMs: expect.any(Number) };

  it('is not asked earlier, also where there is no other', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const { asked, service } = busy(60_000, 1);
    const pool = createPool([service], { retryMs: 0 });
    for (let i = 0; i < 5; i++)
      await expect(pool.createCompletion(ask(`${i}`))).rejects.toMatchObject(overloaded);
    expect(asked.count).toBe(1);
    vi.advanceTimersByTime(59_000);
    await expect(pool.createCompletion(ask('x'))).rejects.toMatchObject({
      ...overloaded,
      retryAfterMs: 1000,
    });
  }, 5_000);

  it('is left to others until then, and back then however often it said so', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const { asked, service } = busy(50, 10);
    const steady = createMemoryService();
    const pool = createPool([service, steady]);
    for (let i = 0; i < 100; i++) await pool.createCompletion(ask(`${i}`));
    expect([asked.count, countOf(steady)]).toEqual([1, 100]);
    for (let times = 2; times <= 11; times++) {
      vi.advanceTimersByTime(51);
      for (let i = 0; i < 2; i++) await pool.createCompletion(ask(`${times} ${i}`));
      expect(asked.count).toBe(times);
    }
  });

  it('is asked again by the request that it refused, twice', async () => {
    const again = busy(50, 2);
    const startMs = performance.now();
    await createPool([again.service]).createCompletion(ask('x'));
    expect(again.asked.count).toBe(3);
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(100);
    const always = busy(1, 100);
    await expect(createPool([always.service]).createCompletion(ask('x'))).rejects.toMatchObject(overloaded);
    expect(always.asked.count).toBe(3);
  });

  it('holds up neither an abort nor the end of the pool', async () => {
    const pool = createPool([busy(20_000, 9).service]);
    const stop = new AbortController();
    const results = Promise.allSettled([
      pool.createCompletion(ask('x'), { signal: stop.signal }),
      pool.createCompletion(ask('y')),
    ]);
    await sleep(5);
    stop.abort();
    await pool.close();
    expect(await results).toMatchObject([{ reason: { code: 'ABORTED' } }, { reason: { code: 'CLOSED' } }]);
  }, 5_000);

  it('says it over HTTP as well', async () => {
    const { asked, service } = busy(60_000, 100);
    const server = await serve(service);
    const pool = createPool([connect({ baseUrl: server.url })]);
    for (let i = 0; i < 3; i++)
      await expect(pool.createCompletion(ask('x'))).rejects.toMatchObject({
        code: 'OVERLOADED',
        retryAfterMs: expect.closeTo(60_000, -3),
      });
    expect(asked.count).toBe(1);
    await pool.close();
    await server.close();
  }, 5_000);
});

it('a member that is killed and restarted 6 times under load loses only its own streams, and none silently', async () => {
  const WORDS = Array.from({ length: 20 }, (_, i) => `word${i} `);
  const options = { pieces: WORDS, pieceMs: 1 };
  const steady = await serve(createMemoryService(options));
  let service = createMemoryService(options);
  let victim: Server = await serve(service, { graceMs: 0 });
  const port = Number(new URL(victim.url).port);
  const clients = [steady, victim].map(({ url }) => connect({ baseUrl: url, maxRetries: 0 }));
  const pool = createPool(clients, { retryMs: 5 });
  let isOver = false;
  const outcomes = { whole: 0, failed: 0 };
  const worker = async (name: number): Promise<void> => {
    for (let i = 0; !isOver; i++) {
      try {
        expect(await read(pool, ask(`${name} ${i}`))).toBe(WORDS.join(''));
        outcomes.whole += 1;
      } catch (error) {
        expect(error).toMatchObject({ code: expect.stringMatching(/^(NETWORK_FAILED|CLOSED)$/) });
        outcomes.failed += 1;
      }
    }
  };
  const workers = Array.from({ length: 8 }, (_, name) => worker(name));
  for (let kill = 0; kill < 6; kill++) {
    await vi.waitUntil(() => outcomes.whole >= 6 * kill && service.active() > 0, {
      interval: 5,
      timeout: 60_000,
    });
    const { failed } = outcomes;
    await victim.close();
    service = createMemoryService(options);
    victim = await serve(service, { port, graceMs: 0 });
    await sleep(10);
    expect(outcomes.failed - failed).toBeLessThanOrEqual(8);
  }
  isOver = true;
  await Promise.all(workers);
  expect(outcomes.failed).toBeGreaterThan(3); // it was under load
  expect(outcomes.whole).toBeGreaterThan(30);
  await pool.close();
  await Promise.all([steady.close(), victim.close()]);
});

it('training stays with one member', async () => {
  const members = [createMemoryService(), createMemoryService()];
  const pool = createPool(members, { trainer: 1 });
  const { id } = await pool.models.create({ base_model: 'x' });
  await (await pool.train({ model_id: id, trajectory_groups: [] })).done;
  expect((await pool.checkpoints.list(id)).data).toHaveLength(1);
  expect(members[0]!.calls).toEqual([]);
  const { createCompletion, close, [Symbol.asyncDispose]: dispose } = members[0]!;
  const plain = createPool([{ createCompletion, close, [Symbol.asyncDispose]: dispose }]);
  expect(() => plain.models).toThrow(expect.objectContaining({ code: 'UNSUPPORTED' }));
});

describe('adapters', () => {
  const adapter = { name: 'step-1', path: '/step-1' };
  /** A member that notes its calls and fails them all with a code. */
  function loader(code: OnpolicyError['code'] | null, calls: string[]) {
    const note = async (what: string): Promise<void> => {
      calls.push(what);
      if (code) throw new OnpolicyError(code, 'not here');
    };
    return Object.assign(createMemoryService(), {
      loadAdapter: ({ name }: { readonly name: string }) => note(`load ${name}`),
      unloadAdapter: (name: string) => note(`unload ${name}`),
    });
  }

  it.each([
    { codes: [null, null], throws: null },
    { codes: [null, 'NETWORK_FAILED'], throws: null },
    { codes: [null, 'NOT_FOUND'], throws: null },
    { codes: [null, 'INVALID_REQUEST'], throws: 'INVALID_REQUEST' },
    { codes: ['NETWORK_FAILED', 'NETWORK_FAILED'], throws: 'NETWORK_FAILED' },
    { codes: ['NETWORK_FAILED', 'INVALID_REQUEST'], throws: 'INVALID_REQUEST' },
    { codes: [], throws: 'UNSUPPORTED' },
  ] as const)('are loaded at all members that can: $codes', async ({ codes, throws }) => {
    const calls: string[] = [];
    const pool = createPool([createMemoryService(), ...codes.map((code) => loader(code, calls))]);
    for (const call of [() => pool.loadAdapter(adapter), () => pool.unloadAdapter(adapter.name)])
      if (throws) await expect(call()).rejects.toMatchObject({ code: throws });
      else await call();
    expect(calls).toEqual([...codes.map(() => 'load step-1'), ...codes.map(() => 'unload step-1')]);
    await pool.close();
    await expect(pool.loadAdapter(adapter)).rejects.toMatchObject({ code: 'CLOSED' });
  });
});

it('options that are wrong are named', () => {
  const member = createMemoryService();
  for (const [members, options, param] of [
    [[], {}, 'services'],
    [[member], { trainer: 1 }, 'trainer'],
    [[member], { retry: 1 }, 'retry'],
  ] as const)
    expect(() => createPool(members, options as PoolOptions)).toThrow(
      expect.objectContaining({ code: 'INVALID_REQUEST', param }),
    );
});
