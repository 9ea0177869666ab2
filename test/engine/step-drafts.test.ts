/** Drafts that slots can have -> those that one pass of the engine checks. */
import { describe, expect, it } from 'vitest';
import { chooseDraftPass } from '../../src/engine/step-drafts.ts';
import { EngineStates } from '../fakes/engine-states.ts';

describe('drafts of sequences with recurrent state', () => {
  it.each<
    [drafts: Record<number, number>, most: number, isKvUnified: boolean, slots: number[], length: number]
  >([
    [{}, 9, true, [], 0],
    [{ 3: 4 }, 9, true, [3], 4],
    [{ 0: 2, 1: 1, 2: 2 }, 9, true, [0, 2], 2],
    [{ 0: 1, 1: 1, 2: 1, 3: 4 }, 9, true, [0, 1, 2, 3], 1],
    [{ 0: 4, 1: 4, 2: 4 }, 9, true, [0, 1, 2], 3],
    [{ 0: 4, 1: 4 }, 0, true, [], 0],
    [{ 5: 2, 1: 2 }, 9, true, [1, 5], 2],
    [{ 0: 2, 1: 2, 4: 2, 5: 2, 6: 2, 9: 2 }, 99, false, [4, 5, 6, 9], 2],
    [{ 0: 2, 2: 2, 4: 2 }, 99, false, [0, 2, 4], 2],
    [{ 0: 2, 1: 1, 2: 2, 3: 2 }, 99, false, [2, 3, 0], 2],
  ])('%j, %i at most, unified %s: %j have %i', (drafts, most, isKvUnified, slots, length) => {
    const lengths = new Map(Object.entries(drafts).map(([slot, count]) => [Number(slot), count]));
    expect(chooseDraftPass(lengths, most, isKvUnified)).toEqual({ slots, length });
  });

  it('fill no more than a pass', () => {
    const lengths = new Map(Array.from({ length: 200 }, (_, slot) => [slot, 4]));
    expect(chooseDraftPass(lengths, 10_000, true).slots).toHaveLength(102);
  });

  const tokens = (counts: readonly (readonly [slot: number, count: number])[]): number[] =>
    counts.flatMap(([slot, count]) => Array<number>(count).fill(slot));
  /** Three sequences that continue from a state after two of their drafts were taken back. */
  const cutMiddle = (order: readonly (readonly [number, number])[]): void => {
    const engine = new EngineStates(4, 4, true, 512);
    engine.step(
      tokens([
        [0, 9],
        [1, 9],
        [2, 9],
      ]),
    );
    engine.step(tokens(order));
    for (const [slot, count] of order) engine.cut(slot, count - 1);
    engine.step([0, 1, 2]);
  };

  it('lose their older states if a later pass of the step moves them', () => {
    expect(() =>
      cutMiddle([
        [1, 2],
        [0, 3],
        [2, 3],
      ]),
    ).toThrow('a state that is not its own');
  });

  it('keep them in the last pass', () => {
    cutMiddle([
      [1, 1],
      [0, 3],
      [2, 3],
    ]);
    cutMiddle([
      [0, 3],
      [1, 3],
      [2, 3],
    ]);
  });
});
