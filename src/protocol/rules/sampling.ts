/** Rules about which tokens may be drawn, and when the draw ends. */
import type { ErrorDetail } from '../../errors.ts';
import { fault, itemFaults } from '../faults.ts';
import type { Speculation, SpeculationSettings } from '../generated/request-types.ts';
import { isJsonObject } from '../json.ts';
import { type ChatRule, conflict, contradiction } from './rule.ts';

const MAX_TOKEN_ID = 2 ** 31 - 1;
const TOKEN_ID = /^(0|[1-9]\d{0,9})$/;

export const samplingRules: readonly ChatRule[] = [
  contradiction(
    'greedy decoding gives one answer',
    ['n', 'temperature', 'use_beam_search'],
    '1 with temperature 0, which gives the same answer every time',
    ({ temperature, n, use_beam_search }) => temperature === 0 && (n ?? 1) > 1 && !use_beam_search,
  ),
  {
    name: 'choices are capped',
    reads: ['n'],
    isLimit: true,
    check: ({ n }, { maxChoices }) =>
      maxChoices !== null && (n ?? 1) > maxChoices
        ? fault(['n'], 'range', `an integer from 1 to ${maxChoices}, the most this server gives`, n, {
            maximum: maxChoices,
          })
        : null,
  },
  {
    name: 'logit_bias keys are token ids',
    reads: ['logit_bias'],
    check: ({ logit_bias }) => {
      if (!logit_bias) return null;
      if (!isJsonObject(logit_bias)) return fault(['logit_bias'], 'type', 'an object or null', logit_bias);
      return Object.keys(logit_bias)
        .filter((key) => !isTokenId(key))
        .map((key) => fault(['logit_bias', key], 'value', 'a token id as key', key));
    },
  },
  {
    name: 'a draft model is named where one drafts',
    reads: ['speculation'],
    check: ({ speculation }) => {
      const expected = faultOfSpeculation(speculation ?? null);
      if (expected === null) return null;
      return fault(
        ['speculation', 'model'],
        'conflict',
        expected,
        (speculation as SpeculationSettings).model,
      );
    },
  },
  {
    name: 'bad words are not blank',
    reads: ['bad_words'],
    check: ({ bad_words }) =>
      itemFaults(
        bad_words ?? [],
        (word) => word.trim() === '',
        (word, i) => fault(['bad_words', String(i)], 'length', 'a text that is not blank', word),
      ),
  },
  {
    name: 'a repetition has sizes and a count',
    reads: ['repetition_detection'],
    check: ({ repetition_detection }) => {
      const { max_pattern_size = 0, min_pattern_size = 0, min_count = 0 } = repetition_detection ?? {};
      const faultOf = (field: string, expected: string, got: number): ErrorDetail =>
        fault(['repetition_detection', field], 'conflict', expected, got);
      if (min_pattern_size > max_pattern_size)
        return faultOf('min_pattern_size', `at most max_pattern_size, ${max_pattern_size}`, min_pattern_size);
      if (max_pattern_size === 0 || min_count >= 2) return null;
      return faultOf('min_count', 'at least 2 with a max_pattern_size above 0', min_count);
    },
  },
  {
    name: 'min_tokens fit into the most tokens',
    reads: ['min_tokens', 'max_tokens', 'max_completion_tokens'],
    check: ({ min_tokens, max_tokens, max_completion_tokens }) => {
      const most = max_completion_tokens ?? max_tokens ?? Number.POSITIVE_INFINITY;
      return (min_tokens ?? 0) > most
        ? conflict('min_tokens', `at most the ${most} tokens that may be generated`, min_tokens)
        : null;
    },
  },
];

/** Returns a description of the expected `model` of speculation settings, or null if `model` is valid. */
export function faultOfSpeculation(speculation: Speculation | null): string | null {
  if (!speculation || speculation === 'auto') return null;
  const { method, model } = speculation;
  if (method === 'draft') return model == null ? 'a model with method draft' : null;
  return model == null ? null : `no value with method ${method}`;
}

/** Returns true if a key of `logit_bias` is a token id: decimal digits, no sign, no leading zero. */
function isTokenId(key: string): boolean {
  return TOKEN_ID.test(key) && Number(key) <= MAX_TOKEN_ID;
}
