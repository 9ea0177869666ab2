/** What contradicts beam search, which draws nothing, and a context that shifts: one entry per field. */
import type { ChatCompletionRequest } from '../generated/request-types.ts';
import { type ChatRule, contradiction } from './rule.ts';

type Field = keyof ChatCompletionRequest;
type Row = readonly [expected: string, isGiven: (value: unknown) => boolean, ...fields: Field[]];

const isGiven = (value: unknown): boolean =>
  value != null && value !== false && !(Array.isArray(value) && value.length === 0);
const isNot =
  (off: number): Row[1] =>
  (value) =>
    value != null && value !== off;

const BEAMS: readonly Row[] = [
  ['1 or nothing', isNot(1), 'top_p', 'typical_p', 'repetition_penalty'],
  ['0, -1 or nothing', (count) => Number(count ?? 0) > 0, 'top_k'],
  ['0 or nothing', isNot(0), 'min_p', 'xtc_probability', 'dry_multiplier', 'dynatemp_range', 'mirostat'],
  ['0 or nothing', isNot(0), 'min_tokens', 'frequency_penalty', 'presence_penalty'],
  ['false or nothing', isGiven, 'return_routed_experts'],
  [
    'no max_tokens',
    (given) => (given as ChatCompletionRequest['reasoning'])?.max_tokens != null,
    'reasoning',
  ],
  ['nothing', isGiven, 'logits_processors', 'thinking_token_budget', 'prompt_logprobs', 'kv_transfer_params'],
];

const SHIFTS: readonly Row[] = [
  ['nothing', isGiven, 'use_beam_search', 'return_routed_experts', 'logits_processors', 'kv_transfer_params'],
  ['nothing', isGiven, 'truncate_prompt_tokens'],
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
    'nothing with a temperature above 0 with use_beam_search: true',
    ({ seed, temperature, use_beam_search }) =>
      Boolean(use_beam_search) && (temperature ?? 0) > 0 && (seed ?? -1) !== -1,
  ),
  ...exclude('use_beam_search', 'beam search', BEAMS),
  ...exclude('context_shift', 'a context that shifts', SHIFTS),
  contradiction(
    'n_keep needs a context that shifts',
    ['n_keep', 'context_shift'],
    'nothing without context_shift: true',
    ({ context_shift, n_keep }) => n_keep != null && !context_shift,
  ),
];
