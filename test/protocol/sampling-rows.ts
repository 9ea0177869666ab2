/** The fields about sampling and stopping. */

import { atLeastOne, flag, penalty, type Row, same, text } from './field-row.ts';
import { LLAMA_ROWS } from './llama-sampler-rows.ts';

/** By field. */
export const SAMPLING_ROWS: Record<string, Row> = {
  model: text(null, ['', null]),
  frequency_penalty: penalty,
  presence_penalty: penalty,
  repetition_penalty: {
    absent: null,
    good: same(0.01, 1, 30, 1e-37, 1e38, null),
    bad: [
      [0, ': expected a number from 1e-37 to 1e+38 or null, got 0'],
      [-1, ': expected a number from 1e-37 to 1e+38 or null, got -1'],
      [1e-300, ': expected a number from 1e-37 to 1e+38 or null, got 1e-300'],
      [1e300, ': expected a number from 1e-37 to 1e+38 or null, got 1e+300'],
      [Number.POSITIVE_INFINITY, ': expected a number from 1e-37 to 1e+38 or null, got Infinity'],
    ],
  },
  logit_bias: {
    absent: new Map(),
    good: [
      [null, new Map()],
      [{}, new Map()],
      [
        { 5: 2.5, 7: -300, 9: 1e9 },
        new Map([
          [5, 2.5],
          [7, -100],
          [9, 100],
        ]),
      ],
    ],
    bad: [
      [{ x: 1 }, '.x: expected a token id as key, got "x"'],
      [{ '-1': 1 }, '.-1: expected a token id as key, got "-1"'],
      [{ '1.5': 1 }, '.1.5: expected a token id as key, got "1.5"'],
      [{ '007': 1 }, '.007: expected a token id as key, got "007"'],
      [{ 2147483648: 1 }, '.2147483648: expected a token id as key, got "2147483648"'],
      [JSON.parse('{"__proto__": 1}'), '.__proto__: expected a token id as key, got "__proto__"'],
      [{ 5: '1' }, '.5: expected a number, got "1"'],
      [{ 5: Number.NaN }, '.5: expected a number, got NaN'],
      [new Map([[5, 1]]), ': expected an object or null, got a value of type Map'],
      [[1], ': expected an object or null, got a list of 1'],
    ],
  },
  temperature: {
    absent: null,
    good: same(0, 0.001, 1, 7, 1e38, null),
    bad: [
      [-0.1, ': expected a number from 0 to 1e+38 or null, got -0.1'],
      [1e39, ': expected a number from 0 to 1e+38 or null, got 1e+39'],
      [Number.POSITIVE_INFINITY, ': expected a number from 0 to 1e+38 or null, got Infinity'],
      [[], ': expected a number from 0 to 1e+38 or null, got an empty list'],
    ],
  },
  top_p: {
    absent: null,
    good: same(0.0001, 1, null),
    bad: [
      [0, ': expected a number > 0 and <= 1 or null, got 0'],
      [1.1, ': expected a number > 0 and <= 1 or null, got 1.1'],
    ],
  },
  ...LLAMA_ROWS,
  top_k: {
    absent: null,
    good: [...same(1, 0, 100_000, null), [-1, 0]],
    bad: [
      [-2, ': expected an integer >= -1 or null, got -2'],
      [1.5, ': expected an integer >= -1 or null, got 1.5'],
    ],
  },
  min_p: {
    absent: null,
    good: same(0, 0.5, 1, null),
    bad: [
      [-0.1, ': expected a number from 0 to 1 or null, got -0.1'],
      [1.1, ': expected a number from 0 to 1 or null, got 1.1'],
    ],
  },
  seed: {
    absent: null,
    good: [
      [0, 0n],
      [42, 42n],
      [-2, -2n],
      [-1, null], // asks for no seed
      [-1n, null],
      [null, null],
      [2 ** 60, 2n ** 60n],
      [2 ** 63, 2n ** 63n - 1n], // how 2^63 - 1 comes out of JSON
      [-(2 ** 63), -(2n ** 63n)],
      [2n ** 63n - 1n, 2n ** 63n - 1n],
      [-(2n ** 63n), -(2n ** 63n)],
    ],
    bad: [
      [
        1e19,
        ': expected an integer from -9223372036854775808 to 9223372036854775807 or null, got 10000000000000000000',
      ],
      [
        2n ** 63n,
        ': expected an integer from -9223372036854775808 to 9223372036854775807, got 9223372036854775808n',
      ],
      [0.5, ': expected an integer from -9223372036854775808 to 9223372036854775807 or null, got 0.5'],
      ['7', ': expected an integer from -9223372036854775808 to 9223372036854775807 or null, got "7"'],
    ],
  },
  n: {
    absent: 1,
    good: [...same(1, 2, 16_384), [null, 1]],
    bad: [
      [0, ': expected an integer from 1 to 16384 or null, got 0'],
      [16_385, ': expected an integer from 1 to 16384 or null, got 16385'],
      [true, ': expected an integer from 1 to 16384 or null, got true'],
    ],
  },
  use_beam_search: flag(false),
  length_penalty: {
    absent: 1,
    good: same(-1, 0, 2.5, -50, 50),
    bad: [
      [null, ': expected a number from -50 to 50, got null'],
      [Number.NaN, ': expected a number from -50 to 50, got NaN'],
      [-1e308, ': expected a number from -50 to 50, got -1e+308'],
    ],
  },
  max_tokens: atLeastOne,
  max_completion_tokens: atLeastOne,
  min_tokens: {
    absent: 0,
    good: same(0, 3),
    bad: [
      [-1, ': expected an integer >= 0, got -1'],
      [null, ': expected an integer >= 0, got null'],
    ],
  },
  repetition_detection: {
    absent: null,
    good: [
      [null, null],
      [{}, null],
      [{ max_pattern_size: 0, min_pattern_size: 0, min_count: 0 }, null],
      [
        { max_pattern_size: 20, min_count: 4 },
        { max_pattern_size: 20, min_pattern_size: 1, min_count: 4 },
      ],
      ...same({ max_pattern_size: 65_536, min_pattern_size: 3, min_count: 2 }),
    ],
    bad: [
      [true, ': expected an object or null, got true'],
      [{ max_pattern_size: -1 }, '.max_pattern_size: expected an integer from 0 to 65536, got -1'],
      [{ max_pattern_size: 65_537 }, '.max_pattern_size: expected an integer from 0 to 65536, got 65537'],
      [{ max_pattern_size: '8' }, '.max_pattern_size: expected an integer from 0 to 65536, got "8"'],
      [{ min_pattern_size: 1.5 }, '.min_pattern_size: expected an integer from 0 to 65536, got 1.5'],
      [{ min_count: -1 }, '.min_count: expected an integer from 0 to 2147483647, got -1'],
      [{ pattern: 1 }, '.pattern: not a field of repetition_detection'],
    ],
  },
  stop: {
    absent: [],
    good: [
      [null, []],
      ['\n', ['\n']],
      [
        ['a', 'bc'],
        ['a', 'bc'],
      ],
      [[], []],
    ],
    bad: [
      ['', ': expected a non-empty string, a list or null, got ""'],
      [['a', ''], '.1: expected a non-empty string, got ""'],
      [['a', 5], '.1: expected a non-empty string, got 5'],
      [5, ': expected a non-empty string, a list or null, got 5'],
    ],
  },
  stop_token_ids: {
    absent: [],
    good: [...same([0, 5, 5], []), [null, []]],
    bad: [
      [[1.5], '.0: expected an integer >= 0, got 1.5'],
      [[-1], '.0: expected an integer >= 0, got -1'],
      [Int32Array.of(1), ': expected a list or null, got a value of type Int32Array'],
    ],
  },
  include_stop_str_in_output: flag(false),
  ignore_eos: flag(false),
  allowed_token_ids: {
    absent: null,
    good: same([0], [5, 9], null),
    bad: [
      [[], ': expected a non-empty list or null, got an empty list'],
      [['5'], '.0: expected an integer >= 0, got "5"'],
    ],
  },
  bad_words: {
    absent: [],
    good: same([], ['a', ' two words']),
    bad: [
      [null, ': expected a list, got null'],
      [['ok', ''], '.1: expected a text that is not blank, got ""'],
      [[' \n'], '.0: expected a text that is not blank, got " \\n"'],
      [[5], '.0: expected a string, got 5'],
    ],
  },
};
