/** Models that are only names -> the models that are loaded, that wait and that are unloaded. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { MemoryNeed } from '../../src/models/memory-need.ts';
import { Residency, type Resident } from '../../src/models/residency.ts';

const need = (bytes: number): MemoryNeed => ({
  weights: bytes,
  cache: 0,
  compute: 0,
  checkpoints: 0,
  host: bytes,
  device: 0,
});

/** A residency whose models take 10 bytes each, and what happens in it. */
function open({
  budget = null,
  idleMs = null,
  free = 1000,
}: {
  budget?: number | null;
  idleMs?: number | null;
  free?: number;
}) {
  const log: string[] = [];
  const held = { bytes: 0 };
  const residency = new Residency<string>({
    budget,
    idleMs,
    freeBytes: () => ({ host: free - held.bytes, device: 0 }),
    unload: async (name) => {
      log.push(`-${name}`);
      held.bytes -= 10;
    },
  });
  const residents = new Map<string, Resident<string>>();
  const find = (name: string, bytes = 10): Resident<string> => {
    const known = residents.get(name);
    if (known && !known.isLeaving) return known;
    const added = residency.add(name, name, async (_, enter) => {
      await enter(need(bytes));
      if (name === 'broken') throw new Error('broken');
      log.push(`+${name}`);
      held.bytes += 10;
      return name;
    });
    residents.set(name, added);
    void added.gone.then(() => {
      if (residents.get(name) === added) residents.delete(name);
    });
    return added;
  };
  const use = async (name: string, keepMs: number | null = null, signal?: AbortSignal) => {
    for (let known = residents.get(name); known?.isLeaving; known = residents.get(name)) await known.gone;
    return await residency.use(find(name), signal, keepMs);
  };
  /** Uses a model and ends the use. */
  const touch = async (name: string, keepMs: number | null = null): Promise<void> => {
    (await use(name, keepMs))[Symbol.dispose]();
  };
  return { residency, log, use, touch, find };
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('room under a budget', () => {
  it.each<[string, string[], string[]]>([
    ['as long as it lasts', ['a', 'b', 'a'], ['+a', '+b']],
    ['of the least recently used', ['a', 'b', 'a', 'c'], ['+a', '+b', '-b', '+c']],
    ['again and again', ['a', 'b', 'c', 'a', 'c'], ['+a', '+b', '-a', '+c', '-b', '+a']],
  ])('%s', async (_, names, expected) => {
    const { log, touch } = open({ budget: 20 });
    for (const name of names) await touch(name);
    expect(log).toEqual(expected);
  });

  it('is never made by a model in use: the load waits, and the next request of that model behind it', async () => {
    const { log, use, touch, residency } = open({ budget: 10 });
    const first = await use('a');
    const second = use('b');
    await settle();
    expect([...residency.list()].map(({ name, state }) => [name, state])).toEqual([
      ['a', 'leaving'],
      ['b', 'waiting'],
    ]);
    const third = touch('a');
    await settle();
    expect(log).toEqual(['+a']);
    first[Symbol.dispose]();
    (await second)[Symbol.dispose]();
    await third;
    expect(log).toEqual(['+a', '-a', '+b', '-b', '+a']);
  });

  it('is given in order', async () => {
    const { log, use, touch } = open({ budget: 10 });
    const first = await use('a');
    const others = ['b', 'c', 'd'].map((name) => touch(name));
    first[Symbol.dispose]();
    await Promise.all(others);
    expect(log.filter((line) => line.startsWith('+'))).toEqual(['+a', '+b', '+c', '+d']);
  });

  it('is refused with figures to what can never fit', async () => {
    const { use, find } = open({ budget: 20 });
    find('large', 21);
    await expect(use('large')).rejects.toMatchObject({
      code: 'OUT_OF_MEMORY',
      detail: [{ loc: ['model'], type: 'memory', ctx: { weights: 21, cache: 0, compute: 0, budget: 20 } }],
    });
  });

  it('is refused where the system has too little, after idle models have left', async () => {
    const { use, touch, find, log } = open({ free: 25 });
    await touch('a');
    await touch('b');
    find('c', 20);
    await touch('c');
    expect(log).toEqual(['+a', '+b', '-a', '-b', '+c']);
    find('large', 26);
    await expect(use('large')).rejects.toMatchObject({
      code: 'OUT_OF_MEMORY',
      message: expect.stringContaining('must be free'),
    });
  });
});

describe('what belongs beside a model in use', () => {
  const beside = (
    { residency }: ReturnType<typeof open>,
    model: Resident<string>,
    bytes: number,
    onlyIfFree = false,
  ) => {
    const draft = residency.add('draft', 'draft', async (_, enter) => {
      await enter(need(bytes), { model, onlyIfFree, field: 'speculation.model' });
      return 'draft';
    });
    return residency.use(draft, undefined, null);
  };

  it('is refused by name where that model would have to leave', async () => {
    const opened = open({ budget: 15 });
    using _ = await opened.use('a');
    await expect(beside(opened, opened.find('a'), 10)).rejects.toMatchObject({
      code: 'OUT_OF_MEMORY',
      param: 'speculation.model',
      message: expect.stringMatching(/^draft takes 1 MiB .* models in use take 1 MiB of a budget of 1 MiB/),
    });
    expect([...opened.residency.list()].map(({ name, state }) => [name, state])).toEqual([['a', 'ready']]);
  });

  it('waits for no other model that is used, so that two of them never wait for each other', async () => {
    const opened = open({ budget: 25 });
    using _ = await opened.use('a');
    using other = await opened.use('b');
    await expect(beside(opened, opened.find('a'), 10)).rejects.toMatchObject({ code: 'OUT_OF_MEMORY' });
    expect(other).toBeDefined();
    expect(opened.log).toEqual(['+a', '+b']);
  });

  it('has the room of models that nothing uses, unless it may take only what is free', async () => {
    const opened = open({ budget: 25 });
    await opened.touch('b');
    using _ = await opened.use('a');
    const refused = beside(opened, opened.find('a'), 10, true);
    await expect(refused).rejects.toMatchObject({ code: 'OUT_OF_MEMORY' });
    (await beside(opened, opened.find('a'), 10))[Symbol.dispose]();
    expect(opened.log).toEqual(['+b', '+a', '-b']);
  });
});

describe('a load', () => {
  it('is one for all who want the model, and stops when all have given up', async () => {
    const { log, use, residency } = open({ budget: 10 });
    const uses = await Promise.all([use('a'), use('a'), use('a')]);
    expect(log).toEqual(['+a']);
    const stop = new AbortController();
    const waits = [use('b', null, stop.signal), use('b', null, stop.signal)];
    await settle();
    stop.abort();
    for (const wait of waits) await expect(wait).rejects.toMatchObject({ code: 'ABORTED' });
    for (const one of uses) one[Symbol.dispose]();
    await settle();
    expect([...residency.list()]).toEqual([]); // it was asked to leave for the one that gave up
    expect(log).toEqual(['+a', '-a']);
  });

  it('that fails takes no room', async () => {
    const { use, touch, residency } = open({ budget: 10 });
    await expect(use('broken')).rejects.toThrow('broken');
    await touch('a');
    expect([...residency.list()].map(({ name }) => name)).toEqual(['a']);
  });
});

describe('an idle model', () => {
  beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => vi.useRealTimers());

  it.each<[string, number | null, number | null, number, string[]]>([
    ['stays without a limit', null, null, 1e9, []],
    ['leaves after idleMs', 100, null, 100, ['-a']],
    ['stays for shorter', 100, null, 99, []],
    ['stays as long as its request says', 100, 500, 499, []],
    ['and not longer', 100, 500, 500, ['-a']],
    ['leaves at once for 0', null, 0, 0, ['-a']],
    ['stays for good', 100, Number.POSITIVE_INFINITY, 1e9, []],
  ])('%s', async (_, idleMs, keepMs, afterMs, expected) => {
    const { log, touch } = open({ idleMs });
    await touch('a', keepMs);
    await vi.advanceTimersByTimeAsync(afterMs);
    expect(log.slice(1)).toEqual(expected);
  });

  it('begins to count when its last use ends', async () => {
    const { log, use } = open({ idleMs: 100 });
    const [one, two] = [await use('a'), await use('a')];
    one[Symbol.dispose]();
    await vi.advanceTimersByTimeAsync(1000);
    two[Symbol.dispose]();
    await vi.advanceTimersByTimeAsync(99);
    expect(log).toEqual(['+a']);
    await vi.advanceTimersByTimeAsync(1);
    expect(log).toEqual(['+a', '-a']);
  });
});

describe('leaving and closing', () => {
  it('leave waits for the last use', async () => {
    const { log, use, residency } = open({});
    const one = await use('a');
    const left = residency.leave([...residency.list()][0]!);
    await settle();
    expect(log).toEqual(['+a']);
    one[Symbol.dispose]();
    await left;
    expect(log).toEqual(['+a', '-a']);
  });

  it('close refuses who waits and unloads who is used', async () => {
    const { log, use, residency } = open({ budget: 10 });
    await use('a');
    const waiting = use('b');
    waiting.catch(() => {});
    await settle();
    await residency.close();
    await expect(waiting).rejects.toMatchObject({ code: 'CLOSED' });
    expect(log).toEqual(['+a', '-a']);
  });
});
