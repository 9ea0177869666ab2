/**
 * Rules about fields that contradict beam search, which samples nothing, or a shifting context. One entry per field. A sampler of llama.cpp is
 * refused with beams if it has a value other than its default.
 */
import type { ChatCompletionRequest } from '../generated/request-types.ts';
import { llamaSamplers } from '../schemas/llama-samplers.ts';
import { type ChatRule, contradiction, isGiven } from './rule.ts';

type Field = keyof ChatCompletionRequest;
type Row = readonly [expected: string, isGiven: (value: unknown) => boolean, ...fields: Field[]];

const isNot =
  (off: number): Row[1] =>
  (value) =>
    value != null && value !== off;

const BEAMS: readonly Row[] = [
  ['0, 1 or no value', (given) => isNot(0)(given) && given !== 1, 'temperature'],
  ['1 or no value', isNot(1), 'top_p', 'repetition_penalty'],
  ['0, -1 or no value', (count) => Number(count ?? 0) > 0, 'top_k'],
  ['0 or no value', isNot(0), 'min_p'],
  ...Object.entries(llamaSamplers).map(
    ([field, { default: off }]): Row =>
      typeof off === 'number'
        ? [`${off} or no value`, isNot(off), field as Field]
        : ['no value', isGiven, field as Field],
  ),
  ['0 or no value', isNot(0), 'min_tokens', 'frequency_penalty', 'presence_penalty'],
  ['false or no value', isGiven, 'return_routed_experts', 'return_progress'],
  ['false or no value', isGiven, 'return_timings', 'timings_per_token'],
  [
    'no max_tokens',
    (given) => (given as ChatCompletionRequest['reasoning'])?.max_tokens != null,
    'reasoning',
  ],
  ['no value', isGiven, 'logits_processors', 'thinking_token_budget', 'kv_transfer_params'],
  ['no value', (given) => isGiven(given) && given !== '', 'reasoning_budget_message'],
  ['no value', isGiven, 'prompt_logprobs', 'logprob_token_ids', 'repetition_detection'],
];

const SHIFTS: readonly Row[] = [
  [
    'no value',
    isGiven,
    'use_beam_search',
    'return_routed_experts',
    'logits_processors',
    'kv_transfer_params',
  ],
  ['no value', isGiven, 'truncate_prompt_tokens'],
];

function exclude(mode: Field, what: string, rows: readonly Row[]): ChatRule[] {
  return rows.flatMap(([expected, holds, ...fields]) =>
    fields.map((field) =>
      contradiction(
        `${what} without ${field}`,
        [field, mode],
        `${expected} with ${mode}: true`,
        (request) => request[mode] === true && holds(request[field]),
      ),
    ),
  );
}

export const exclusionRules: readonly ChatRule[] = [
  contradiction(
    'beam search without seed',
    ['seed', 'temperature', 'use_beam_search'],
    'no value with use_beam_search: true and a temperature above 0',
    ({ seed, temperature, use_beam_search }) =>
      Boolean(use_beam_search) && (temperature ?? 0) > 0 && (seed ?? -1) !== -1,
  ),
  ...exclude('use_beam_search', 'beam search', BEAMS),
  ...exclude('context_shift', 'a context that shifts', SHIFTS),
  contradiction(
    'n_keep needs a context that shifts',
    ['n_keep', 'context_shift'],
    'no value without context_shift: true',
    ({ context_shift, n_keep }) => n_keep != null && !context_shift,
  ),
];
