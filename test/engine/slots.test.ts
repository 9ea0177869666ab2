import { describe, expect, it } from 'vitest';
import { allocate } from '../../src/engine/cell-moves.ts';
import { Cells, type SlotLimits } from '../../src/engine/cells.ts';
import type { Sequence } from '../../src/engine/sequence.ts';
import { Slots } from '../../src/engine/slots.ts';
import { LIMITS, prompt, sequencesOf, showEdits } from './plans.ts';

/** Prompts of ten tokens; b begins with eight of a's, c with none; d is a with one more. */
const [A, B, C, D] = [prompt(1, 10), [...prompt(1, 8), 90, 91], prompt(2, 10), [...prompt(1, 10), 99]];

/** An action of a test: starts, computes, ends or forks sequences, which are named by letters. */
type Action =
  | `start ${string}`
  | `startWhole ${string}`
  | `compute ${string}`
  | `end ${string}`
  | `drop ${string}`
  | `fork ${string}`
  | `sibling ${string}`
  | `evict`
  | `room ${number}`;

/** Slots with the sequences a to d. */
class Run {
  readonly cells: Cells;
  readonly slots: Slots;
  readonly #sequences: readonly Sequence[];

  constructor(limits: Partial<SlotLimits> = {}, prefixCache = true) {
    this.cells = new Cells({ ...LIMITS, ...limits }, { prefixCache });
    this.slots = new Slots(this.cells);
    this.#sequences = sequencesOf([A, B, C, D].map((tokens) => ({ prompt: tokens })));
  }

  of(letter: string): Sequence {
    return this.#sequences['abcd'.indexOf(letter)]!;
  }

  /** Runs the operation on the slots and returns their answer. */
  do(action: Action): unknown {
    const [verb, argument = ''] = action.split(' ');
    const sequence = this.of(argument[0]!);
    switch (verb) {
      case 'start': {
        const prefix = this.slots.findPrefix(sequence);
        return prefix === 'soon' ? prefix : this.slots.start(sequence, prefix);
      }
      case 'startWhole':
        return this.slots.start(sequence, null);
      case 'compute':
        this.slots.append(sequence, sequence.length - sequence.place.computed);
        this.slots.advance(sequence, sequence.length);
        return undefined;
      case 'end':
        return this.slots.end(sequence, { keep: true });
      case 'drop':
        return this.slots.end(sequence, { keep: false });
      case 'fork':
        return this.slots.startFork(sequence, this.of(argument[1]!));
      case 'sibling':
        return this.slots.startSibling(sequence, this.of(argument[1]!));
      case 'evict':
        return this.cells.evict();
      default:
        return this.cells.makeRoom(Number(argument));
    }
  }

  /** `a0 b1, 12 in use, 4 cached`: slots of the running ones, and cells. */
  state(): string {
    const running = this.#sequences.flatMap(({ place }, i) =>
      place.slot < 0 ? [] : [`${'abcd'[i]}${place.slot}`],
    );
    const { inUse, cached } = this.cells.usage();
    return `${running.join(' ') || 'none'}, ${inUse} in use, ${cached} cached`;
  }
}

const RUN_A: Action[] = ['start a', 'compute a'];
const CACHE_A: Action[] = [...RUN_A, 'end a'];

describe('slots', () => {
  it.each<[string, Partial<SlotLimits>, Action[], last: unknown, state: string, edits: string]>([
    ['start a sequence in a free slot', {}, ['start a'], true, 'a0, 0 in use, 0 cached', ''],
    ['hold the cells of what was computed', {}, RUN_A, undefined, 'a0, 10 in use, 0 cached', ''],
    ['cache the slot of one that ended', {}, CACHE_A, undefined, 'none, 0 in use, 10 cached', ''],
    [
      'free the slot of one that was dropped',
      {},
      [...RUN_A, 'drop a'],
      undefined,
      'none, 0 in use, 0 cached',
      'free 0',
    ],
    [
      'free a slot in which nothing was computed',
      {},
      ['start a', 'end a'],
      undefined,
      'none, 0 in use, 0 cached',
      'free 0',
    ],
    [
      'cache the slot of one that ended with recurrent state',
      { rollbackTokens: 0 },
      CACHE_A,
      undefined,
      'none, 0 in use, 10 cached',
      '',
    ],
    [
      'share the prefix of a running sequence',
      {},
      [...RUN_A, 'start b'],
      true,
      'a0 b1, 10 in use, 0 cached',
      'copy 0 to 1 until 8',
    ],
    [
      'wait for a prefix that is being computed',
      {},
      ['start a', 'start b'],
      'soon',
      'a0, 0 in use, 0 cached',
      '',
    ],
    [
      'share the prefix of a cached slot, which stays',
      {},
      [...CACHE_A, 'start b'],
      true,
      'b1, 8 in use, 2 cached',
      'copy 0 to 1 until 8',
    ],
    [
      'move a sequence into a cached slot that holds nothing else',
      {},
      [...CACHE_A, 'start d'],
      true,
      'd0, 10 in use, 0 cached',
      '',
    ],
    [
      'copy no short prefix under a non-unified cache',
      { isKvUnified: false },
      [...RUN_A, 'start b'],
      true,
      'a0 b1, 10 in use, 0 cached',
      '',
    ],
    [
      'find no prefix with recurrent state',
      { rollbackTokens: 0 },
      [...RUN_A, 'start b'],
      true,
      'a0 b1, 10 in use, 0 cached',
      '',
    ],
    [
      'find no part of a slot that is longer than the window',
      { windowTokens: 8 },
      [...RUN_A, 'start b'],
      true,
      'a0 b1, 10 in use, 0 cached',
      '',
    ],
    [
      'share the prefix of a slot that is shorter than the window',
      { windowTokens: 16 },
      [...RUN_A, 'start b'],
      true,
      'a0 b1, 10 in use, 0 cached',
      'copy 0 to 1 until 8',
    ],
    [
      'move a sequence into a cached slot that holds nothing else, longer than the window',
      { windowTokens: 8 },
      [...CACHE_A, 'start d'],
      true,
      'd0, 10 in use, 0 cached',
      '',
    ],
    [
      'take a cached slot where there is no room beside it',
      { kvTokens: 11 },
      [...CACHE_A, 'start b'],
      true,
      'b0, 8 in use, 0 cached',
      'cut 0 at 8',
    ],
    [
      'evict what is cached for others',
      { kvTokens: 12 },
      [...CACHE_A, 'start c'],
      true,
      'c1, 0 in use, 0 cached',
      'free 0',
    ],
    [
      'refuse a sequence that finds no cells beside running ones',
      { kvTokens: 12 },
      [...RUN_A, 'start c'],
      false,
      'a0, 10 in use, 0 cached',
      '',
    ],
    [
      'refuse a sequence without a slot',
      { slotCount: 1 },
      [...RUN_A, 'startWhole c'],
      false,
      'a0, 10 in use, 0 cached',
      '',
    ],
    [
      'copy a fork with what is computed',
      {},
      [...RUN_A, 'fork ac'],
      true,
      'a0 c1, 10 in use, 0 cached',
      'copy 0 to 1 until -1',
    ],
    [
      'refuse a fork without a slot',
      { slotCount: 1 },
      [...RUN_A, 'fork ac'],
      false,
      'a0, 10 in use, 0 cached',
      '',
    ],
    [
      'share the cells of a prompt with a sibling',
      {},
      [...RUN_A, 'sibling ad'],
      true,
      'a0 d1, 10 in use, 0 cached',
      '',
    ],
    [
      'give a sibling cells as many under a non-unified cache',
      { isKvUnified: false },
      [...RUN_A, 'sibling ad'],
      true,
      'a0 d1, 20 in use, 0 cached',
      '',
    ],
    [
      'cache no tokens twice',
      {},
      [...RUN_A, 'startWhole d', 'compute d', 'end a', 'end d'],
      undefined,
      'none, 0 in use, 11 cached',
      'free 0',
    ],
    [
      'evict the least recently used slot',
      {},
      [...CACHE_A, 'start c', 'compute c', 'end c', 'evict'],
      true,
      'none, 0 in use, 10 cached',
      'free 0',
    ],
    ['evict no running slot', {}, [...RUN_A, 'evict'], false, 'a0, 10 in use, 0 cached', ''],
    [
      'make room by evicting',
      { kvTokens: 12 },
      [...CACHE_A, 'room 12'],
      true,
      'none, 0 in use, 0 cached',
      'free 0',
    ],
    [
      'say when evicting was not enough',
      { kvTokens: 12 },
      [...RUN_A, 'room 3'],
      false,
      'a0, 10 in use, 0 cached',
      '',
    ],
  ])('%s', (_, limits, actions, last, state, edits) => {
    const run = new Run(limits);
    const answers = actions.map((action) => run.do(action));
    expect(answers.at(-1)).toBe(last);
    expect(run.state()).toBe(state);
    expect(showEdits(run.cells.takeEdits())).toBe(edits);
    expect(run.cells.takeEdits()).toEqual([]); // each once
  });

  it.each<[string, Partial<SlotLimits>, expected: number]>([
    ['as many as wanted', {}, 4],
    ['what is left of the pool', { kvTokens: 13 }, 2],
    ['what is left of its own cells', { isKvUnified: false, kvTokens: 12, slotCount: 1 }, 2],
    ['as many behind a window, in one pass', { windowTokens: 8 }, 4],
    ['none that would push others out of the window', { windowTokens: 13, batchTokens: 1024 }, 2],
    ['one once it is longer than the window', { windowTokens: 8, batchTokens: 1024 }, 1],
    [
      'one behind a window in its own cells, which may be several passes',
      { windowTokens: 8, isKvUnified: false, kvTokens: 40, slotCount: 2 },
      1,
    ],
  ])('gives a sequence cells that it can lose again: %s', (_, limits, expected) => {
    const run = new Run(limits);
    for (const action of RUN_A) run.do(action);
    expect(run.slots.roomBehind(run.of('a'), 4)).toBe(expected);
  });

  it.each<[running: string, isKvUnified: boolean, expected: number]>([
    ['', false, 0],
    ['a', false, 1],
    ['ab', false, 2],
  ])('starts beside the running ones under a non-unified cache: %s', (running, isKvUnified, expected) => {
    const run = new Run({ isKvUnified });
    for (const letter of running) run.do(`startWhole ${letter}`);
    run.do('startWhole c');
    expect(run.of('c').place.slot).toBe(expected);
  });

  it.each<[string, kvTokens: number, used: number, expected: object | null, cached: number]>([
    ['frees the tokens that nobody uses', 64, 9, { slot: 0, edits: new Int32Array(0) }, 9],
    ['finds no room', 8, 9, null, 0],
  ])('allocates a slot for a loaded cache: %s', (_, kvTokens, used, expected, cached) => {
    const run = new Run({ kvTokens });
    expect(allocate(run.cells, run.of('a').group, Int32Array.from(A), used)).toEqual(expected);
    expect(run.cells.usage()).toEqual({ inUse: 0, cached });
    expect(run.slots.findPrefix(run.of('d'))).toEqual(expected && { slot: 0, length: used });
  });
});
