/** Pieces of caches that are saved and loaded while requests run: no token changes, and what is loaded is not computed. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Engine } from '../../src/engine/engine.ts';
import type { Group } from '../../src/engine/sequence.ts';
import { CheckingBackend, type CheckingOptions } from '../fakes/checking-backend.ts';
import { expected, type Request, run, simple, turns, VOCAB_SIZE } from '../fakes/engine-requests.ts';

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
const POLICY = { maxRunning: 6, scheduling: 'fcfs', prefixCache: true, movesPieces: true } as const;
const PIECE = 4;

const groupOf = ({ prompt, adapter, salt }: Request, arrival: number): Group => ({
  prompt: Int32Array.from(prompt),
  cacheKey: `${adapter} ${salt}`,
  adapter,
  priority: 0,
  arrival,
});
type Piece = { readonly to: number; readonly state: Uint8Array };

async function save(engine: Engine, group: Group): Promise<Piece[]> {
  const pieces: Piece[] = [];
  for (let to = PIECE; to <= group.prompt.length; to += PIECE) {
    const saved = await engine.savePiece(group, group.prompt.subarray(0, to), to - PIECE);
    if (!saved) break;
    pieces.push({ to, state: saved.state });
  }
  return pieces;
}

async function load(engine: Engine, group: Group, pieces: readonly Piece[]): Promise<number> {
  let loaded = 0;
  for (const { to, state } of pieces) {
    const tokens = group.prompt.subarray(0, to);
    if (loaded === 0) await engine.adopt(group, tokens, state);
    else if (!(await engine.loadPiece(group, tokens, loaded, state))) break;
    loaded = to;
  }
  return loaded;
}

it('changes no answer, among other requests and in a cache that is nearly full', async () => {
  let [saved, computed, asked] = [0, 0, 0];
  const request = fc.record({
    prompt: fc.array(fc.integer({ min: 0, max: 1 }), { minLength: 1, maxLength: 24 }),
    n: fc.integer({ min: 1, max: 3 }),
    outputTokens: fc.integer({ min: 1, max: 8 }),
    salt: fc.constantFrom('', 'a'),
    delay: fc.integer({ min: 0, max: 20 }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(request, { minLength: 1, maxLength: 8 }),
      fc.constantFrom(40, 80, 256),
      async (given, kvTokens) => {
        const requests = given.map((each) => simple(each));
        const backends = [0, 1].map(() => new CheckingBackend({ ...OPTIONS, kvTokens }));
        const [first, second] = backends.map((backend) => new Engine(backend, POLICY));
        const answer = async (engine: Engine, each: Request, arrival: number) => {
          for (const tokens of await run(engine, each, arrival))
            expect(tokens).toEqual(expected(each, VOCAB_SIZE));
        };
        const pieces = await Promise.all(
          requests.map(async (each, i) => {
            await answer(first!, each, i);
            return await save(first!, groupOf(each, i));
          }),
        );
        await Promise.all(
          requests.map(async (each, i) => {
            await load(second!, groupOf(each, i), pieces[i]!);
            await answer(second!, each, i);
          }),
        );
        await turns(40);
        expect(second!.stats().kvTokensInUse).toBe(0);
        saved += pieces.flat().length;
        [asked, computed] = [asked + backends[0]!.computedTokens, computed + backends[1]!.computedTokens];
        await Promise.all([first!.close(), second!.close()]);
      },
    ),
    { numRuns: 60 },
  );
  expect(saved).toBeGreaterThan(50);
  expect(computed).toBeLessThan(asked);
});

it('computes nothing that was loaded, and goes on where a piece has no room', async () => {
  const each = simple({ prompt: Array.from({ length: 40 }, (_, i) => i % 7), outputTokens: 1 });
  const first = new Engine(new CheckingBackend(OPTIONS), POLICY);
  await run(first, each, 0);
  const pieces = await save(first, groupOf(each, 0));
  expect(pieces).toHaveLength(10);
  await first.close();
  for (const [kvTokens, loaded] of [
    [256, 40],
    [30, 28],
  ] as const) {
    const backend = new CheckingBackend({ ...OPTIONS, kvTokens });
    const engine = new Engine(backend, POLICY);
    expect(await load(engine, groupOf(each, 0), pieces)).toBe(loaded);
    if (kvTokens > 40) {
      expect(await run(engine, each, 0)).toEqual([expected(each, VOCAB_SIZE)]);
      expect(backend.computedTokens).toBe(1); // the last one's logits are needed
    }
    await engine.close();
  }
});

it('loads nothing behind a beginning that is gone, and saves nothing of it', async () => {
  const each = simple({ prompt: Array.from({ length: 12 }, (_, i) => i), outputTokens: 1 });
  const group = groupOf(each, 0);
  const engine = new Engine(new CheckingBackend(OPTIONS), POLICY);
  expect(await engine.savePiece(group, group.prompt.subarray(0, PIECE), 0)).toBeNull();
  expect(await engine.loadPiece(group, group.prompt, PIECE, Uint8Array.of(1))).toBe(false);
  await run(engine, each, 0);
  const other = { ...group, cacheKey: 'other' };
  expect(await engine.savePiece(other, group.prompt.subarray(0, PIECE), 0)).toBeNull();
  await engine.close();
});
