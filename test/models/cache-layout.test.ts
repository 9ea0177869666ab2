/** Which cells sequences get, by what the model can do and how much fits. */
import { expect, it } from 'vitest';
import { type CacheFacts, cacheLayout, stateLayout } from '../../src/models/cache-layout.ts';

const MIB = 2 ** 20;
const MODEL: CacheFacts = {
  contextLength: 8192,
  kvBytesPerToken: MIB / 8,
  supportsNonUnifiedKv: true,
  supportsUnifiedKv: true,
  prefersUnifiedKv: false,
  supportsSmallWindow: false,
  isTiny: false,
  state: { stateBytes: 0, takesBack: false, checkpointSize: 0 },
};

// 4 slots of 1,024 tokens.
it.each<
  [why: string, model: Partial<CacheFacts>, kvTokens: number | null, tokens: number, isKvUnified: boolean]
>([
  ['cells for each where all fit', {}, null, 4096, false],
  ['a pool of as many where that is faster', { prefersUnifiedKv: true }, null, 4096, true],
  ['a pool where less is given', {}, 2048, 2048, true],
  ['of one context at least', {}, 300, 1024, true],
  ['a pool of what fits into 4 GiB', { kvBytesPerToken: 2 * MIB }, null, 2048, true],
  ['a pool where the model wants one', { supportsNonUnifiedKv: false }, 5000, 5000, true],
  [
    'never a pool where the model cannot',
    { supportsUnifiedKv: false, prefersUnifiedKv: false },
    2048,
    2048,
    false,
  ],
])('%s', (_, model, kvTokens, tokens, isKvUnified) => {
  expect(cacheLayout({ ...MODEL, ...model }, 1024, 4, kvTokens)).toEqual({ kvTokens: tokens, isKvUnified });
});

it.each<[why: string, state: Partial<CacheFacts['state']>, slots: number, options: object, expected: object]>(
  [
    ['all slots without a state', {}, 80, {}, { slotCount: 80, rollbackTokens: 0, checkpointBytes: 0 }],
    [
      'a few slots with rollback before many without',
      { stateBytes: 19 * MIB, takesBack: true, checkpointSize: 19 * MIB },
      68,
      {},
      { slotCount: 21, rollbackTokens: 4, checkpointBytes: 256 * MIB },
    ],
    [
      'many where nothing is to be taken back',
      { stateBytes: 19 * MIB, takesBack: true },
      68,
      { rollbackTokens: 0 },
      { slotCount: 68, rollbackTokens: 0 },
    ],
    [
      'no rollback for large states',
      { stateBytes: 150 * MIB, takesBack: true, checkpointSize: 150 * MIB },
      68,
      {},
      { slotCount: 13, rollbackTokens: 0, checkpointBytes: 1200 * MIB },
    ],
    [
      'slots that were asked for',
      { stateBytes: 900 * MIB },
      5,
      { rollbackTokens: 9 },
      { slotCount: 5, rollbackTokens: 0 },
    ],
    [
      'what was asked for, at any price',
      { stateBytes: 900 * MIB, takesBack: true, checkpointSize: 900 * MIB },
      5,
      { rollbackTokens: 9, checkpointBytes: 1 },
      { slotCount: 5, rollbackTokens: 9, checkpointBytes: 1 },
    ],
  ],
)('gives states: %s', (_, state, slots, options, expected) => {
  expect(stateLayout({ ...MODEL.state, ...state }, slots, options)).toMatchObject(expected);
});
