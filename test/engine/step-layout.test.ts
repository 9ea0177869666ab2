import { describe, expect, it } from 'vitest';
import type { Handle } from '../../src/engine/native/index.ts';
import type { Entry, Plan } from '../../src/engine/plan.ts';
import type { Sequence } from '../../src/engine/sequence.ts';
import { toStep } from '../../src/engine/step-layout.ts';
import { LogitsHook } from '../../src/sampling/logits-hook.ts';
import { PromptScores } from '../../src/sampling/prompt-scores.ts';
import { type Given, sequencesOf } from './plans.ts';

const ALPHA = { prompt: [11, 12, 13] };
const BETA = { prompt: [21, 22] };
const HOOK = new LogitsHook([() => {}], Int32Array.from(ALPHA.prompt), 4);
const MATCHER = {} as Handle;

/** One entry by the places of its sequences among those of the row. */
type Row = {
  readonly of: number;
  readonly start: number;
  readonly count: number;
  readonly samples: number[];
};

function planOf(sequences: readonly Sequence[], rows: readonly Row[], more: Partial<Plan> = {}): Plan {
  for (const [slot, sequence] of sequences.entries()) Object.assign(sequence.place, { slot });
  const entries = rows.map(
    ({ of, samples, ...rest }): Entry => ({
      ...rest,
      sequence: sequences[of]!,
      samples: samples.map((at) => sequences[at]!),
      drafts: new Int32Array(0),
    }),
  );
  return { adapter: 0, edits: [], isSteady: false, entries, ...more };
}

describe('toStep', () => {
  it.each<[string, Given[], Row[], object]>([
    [
      'lays tokens of several sequences end to end',
      [ALPHA, BETA],
      [
        { of: 0, start: 1, count: 2, samples: [0] },
        { of: 1, start: 0, count: 2, samples: [1] },
      ],
      {
        tokens: [12, 13, 21, 22],
        positions: [1, 2, 0, 1],
        sequences: [0, 0, 1, 1],
        sampleRows: [1, 3],
        scoreRows: [],
      },
    ],
    [
      'samples nothing from a part of a prompt',
      [ALPHA],
      [{ of: 0, start: 0, count: 2, samples: [] }],
      { tokens: [11, 12], positions: [0, 1], sequences: [0, 0], sampleRows: [], scoreRows: [] },
    ],
    [
      'samples for all choices from one row',
      [{ ...ALPHA, n: 3 }],
      [{ of: 0, start: 2, count: 1, samples: [0, 1, 2] }],
      { tokens: [13], positions: [2], sequences: [0], sampleRows: [0, 0, 0], scoreRows: [] },
    ],
    [
      'scores each token of a prompt from the row before it',
      [BETA, { ...ALPHA, extras: { promptScores: new PromptScores(Int32Array.from(ALPHA.prompt), 5) } }],
      [
        { of: 0, start: 0, count: 2, samples: [0] },
        { of: 1, start: 0, count: 3, samples: [1] },
      ],
      {
        tokens: [21, 22, 11, 12, 13],
        positions: [0, 1, 0, 1, 2],
        sequences: [0, 0, 1, 1, 1],
        sampleRows: [1, 4],
        scoreRows: [2, 12, 5, 3, 13, 5],
      },
    ],
  ])('%s', (_, given, rows, expected) => {
    const sequences = sequencesOf(given);
    const {
      tokens,
      positions,
      sequences: slots,
      sampleRows,
      scoreRows,
      samplers,
    } = toStep(planOf(sequences, rows));
    const columns = { tokens, positions, sequences: slots, sampleRows, scoreRows };
    const lists = Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, [...column]]));
    expect(lists).toEqual(expected);
    expect(samplers).toEqual(rows.flatMap(({ samples }) => samples.map((at) => sequences[at]!.sampler)));
  });

  it('carries adapter and cache edits', () => {
    const plan = planOf(sequencesOf([ALPHA]), [{ of: 0, start: 0, count: 3, samples: [0] }], {
      adapter: 7,
      edits: [0, 1, 0, -1, -1],
    });
    expect(toStep(plan)).toMatchObject({ adapter: 7, memoryEdits: Int32Array.of(0, 1, 0, -1, -1) });
  });

  it.each<[string, held: boolean[], expected: object]>([
    ['absent where no sequence has one', [false, false], {}],
    ['one per sample, null for those without', [false, true], { matchers: [null, MATCHER] }],
  ])('gives matchers: %s', (_, held, expected) => {
    const sequences = sequencesOf([ALPHA, BETA]);
    for (const [i, isHeld] of held.entries()) sequences[i]!.matcher = isHeld ? MATCHER : null;
    const step = toStep(
      planOf(sequences, [
        { of: 0, start: 2, count: 1, samples: [0] },
        { of: 1, start: 1, count: 1, samples: [1] },
      ]),
    );
    expect('matchers' in step ? { matchers: step.matchers } : {}).toEqual(expected);
  });

  it('names hooked samples in ascending order, with the row and the edit of their hook', () => {
    const sequences = sequencesOf([BETA, { ...ALPHA, extras: { hook: HOOK } }]);
    const { rowEdits } = toStep(
      planOf(sequences, [
        { of: 0, start: 1, count: 1, samples: [0] },
        { of: 1, start: 2, count: 1, samples: [1] },
      ]),
    );
    expect(rowEdits.map(({ sample }) => sample)).toEqual([1]);
    expect(rowEdits[0]!.row()).toBe(HOOK.row());
    expect(rowEdits[0]!.edit()).toBe(true);
  });

  it.each<[string, Given['extras'], isSteady: boolean, expected: boolean]>([
    ['a steady plan', {}, true, true],
    ['a plan that is not steady', {}, false, false],
    ['a hook, which may change any token', { hook: HOOK }, true, false],
    ['the last token of a choice', { maxOutputs: 1 }, true, false],
    ['the last but one', { maxOutputs: 2 }, true, true],
  ])('says whether the backend may run ahead: %s', (_, extras, isSteady, expected) => {
    const sequences = sequencesOf([{ ...ALPHA, ...(extras ? { extras } : {}) }]);
    const plan = planOf(sequences, [{ of: 0, start: 0, count: 3, samples: [0] }], { isSteady });
    expect(toStep(plan).mayRunAhead).toBe(expected);
  });
});
