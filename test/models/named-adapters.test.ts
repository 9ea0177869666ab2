/** Adapters by name that are loaded, asked for and given back at once: what stays loaded for a name. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { AdapterFile } from '../../src/models/adapter-files.ts';
import { Adapters } from '../../src/models/adapters.ts';
import { keeperOf, NamedAdapters } from '../../src/models/named-adapters.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-named-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** A model whose engine notes which files are loaded in it. */
function setUp() {
  const loaded = new Map<number, string>();
  let count = 0;
  const adapters = new Adapters({
    engine: {
      loadAdapter: async (file) => {
        await new Promise(setImmediate);
        loaded.set(++count, path.basename(file));
        return count;
      },
      mixAdapters: async () => 0,
      freeAdapter: async (number) => void loaded.delete(number),
    },
    files: {
      sizeOf: async () => 1,
      open: async ({ path: file }) => ({ file, [Symbol.asyncDispose]: async () => {} }),
    },
    reserve: async () => ({ [Symbol.dispose]: () => {} }),
  });
  const named = new NamedAdapters();
  const load = (name: string, file: string, isReplacing = false): Promise<void> => {
    fs.writeFileSync(path.join(folder, file), '');
    const given = { name, path: path.join(folder, file), base: null };
    return named.add(given, isReplacing, (adapter) => adapters.keep(keeperOf(name), adapter.file));
  };
  /** As a request does that found the adapter before. */
  const ask = (found: ReturnType<NamedAdapters['find']>): Promise<void> => {
    const { keeper, file, isWanted } = named.keeping(found!);
    return adapters.keep(keeper, file as AdapterFile, isWanted);
  };
  const settled = async (): Promise<string[]> => {
    await new Promise(setImmediate);
    return [...loaded.values()];
  };
  return { named, adapters, load, ask, settled };
}

describe('an adapter with a name', () => {
  it('stays loaded when another one of its name comes at the same time, and is refused', async () => {
    const { named, load, settled } = setUp();
    const results = await Promise.allSettled([load('a', 'first'), load('a', 'second')]);
    expect(results).toMatchObject([{ status: 'fulfilled' }, { reason: { code: 'CONFLICT' } }]);
    expect(named.find('a')!.path).toBe(path.join(folder, 'first'));
    expect(await settled()).toEqual(['first']);
  });

  it('leaves its name to the next one when it cannot be loaded', async () => {
    const { named, load, settled } = setUp();
    const missing = named.add(
      { name: 'a', path: path.join(folder, 'none'), base: null },
      false,
      async () => {},
    );
    const results = await Promise.allSettled([missing, load('a', 'second')]);
    expect(results).toMatchObject([{ reason: { code: 'MODEL_NOT_FOUND' } }, { status: 'fulfilled' }]);
    expect(await settled()).toEqual(['second']);
  });

  it('stays loaded when a request that found the one before it comes later', async () => {
    const { named, load, ask, settled } = setUp();
    await load('a', 'first');
    const found = named.find('a');
    await load('a', 'second', true);
    await ask(found);
    expect(await settled()).toEqual(['second']);
  });

  it('is not loaded again by a request that found it before it was given back', async () => {
    const { named, adapters, load, ask, settled } = setUp();
    await load('a', 'first');
    const found = named.find('a');
    adapters.drop(keeperOf('a'));
    const asked = ask(found);
    named.remove('a');
    await asked;
    expect(await settled()).toEqual([]);
  });
});
