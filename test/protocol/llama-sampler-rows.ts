/** The fields of llama.cpp's samplers. */
import { type Row, same } from './field-row.ts';

const number = (absent: number, good: readonly number[], bad: readonly number[], range: string): Row => ({
  absent,
  good: [...same(...good), [null, absent]],
  bad: [
    ...bad.map((value) => [value, `: expected ${range} or null, got ${value}`] as const),
    ['1', `: expected ${range} or null, got "1"`],
  ],
});

const FROM_0 = 'a number from 0 to 1e+38';
const SHARE = 'a number from 0 to 1';
const COUNT = 2 ** 31 - 1;

/** By field. */
export const LLAMA_ROWS: Record<string, Row> = {
  typical_p: number(1, [0.01, 1], [0, 1.1, Number.NaN], 'a number > 0 and <= 1'),
  xtc_probability: number(0, [0, 0.5, 1], [-0.1, 1.1], SHARE),
  xtc_threshold: number(0.1, [0, 0.5, 1], [-0.1, 1.1], SHARE),
  dry_multiplier: number(0, [0, 0.8, 1e38], [-1, 1e39], FROM_0),
  dry_base: number(1.75, [1, 1.75, 4], [0.99, 1e39], 'a number from 1 to 1e+38'),
  dry_allowed_length: number(2, [0, 1, COUNT], [-1, 1.5, COUNT + 1], `an integer from 0 to ${COUNT}`),
  dry_penalty_last_n: number(-1, [-1, 0, 512], [-2, 1.5], `an integer from -1 to ${COUNT}`),
  dry_sequence_breakers: {
    absent: ['\n', ':', '"', '*'],
    good: [...same([], ['a', ' b ']), [null, ['\n', ':', '"', '*']]],
    bad: [
      [[''], '.0: expected a non-empty string, got ""'],
      ['a', ': expected a list or null, got "a"'],
      [[1], '.0: expected a non-empty string, got 1'],
    ],
  },
  dynatemp_range: number(0, [0, 0.5, 1e38], [-0.5, 1e39], FROM_0),
  dynatemp_exponent: number(1, [0, 1, 2.5], [-1, 1e39], FROM_0),
  top_n_sigma: number(-1, [-1, 0, 1.5], [-1.5, 1e39], 'a number from -1 to 1e+38'),
  adaptive_target: number(-1, [-1, 0, 0.4, 1], [-1.1, 1.1], 'a number from -1 to 1'),
  adaptive_decay: number(0.9, [0, 0.99], [-0.1, 1], 'a number from 0 to 0.99'),
  mirostat: number(0, [0, 1, 2], [-1, 3, 1.5], 'an integer from 0 to 2'),
  mirostat_tau: number(5, [0, 5, 1e38], [-1, 1e39], FROM_0),
  mirostat_eta: number(0.1, [0, 0.1], [-1, 1e39], FROM_0),
};
