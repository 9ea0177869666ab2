/** What contradicts beam search, which draws nothing: one entry per field. */
import type { ChatCompletionRequest } from '../generated/request-types.ts';
import { type ChatRule, contradiction } from './rule.ts';

type Row = readonly [
  field: keyof ChatCompletionRequest,
  expected: string,
  holds: (request: ChatCompletionRequest) => boolean,
];

const ROWS: readonly Row[] = [
  ['top_p', '1 or nothing', ({ top_p }) => (top_p ?? 1) < 1],
  ['typical_p', '1 or nothing', ({ typical_p }) => (typical_p ?? 1) < 1],
  ['repetition_penalty', '1 or nothing', ({ repetition_penalty }) => (repetition_penalty ?? 1) !== 1],
  ['top_k', '0, -1 or nothing', ({ top_k }) => (top_k ?? 0) > 0],
  ...(
    ['min_p', 'xtc_probability', 'dry_multiplier', 'dynatemp_range', 'mirostat', 'min_tokens'] as const
  ).map((field): Row => [field, '0 or nothing', (request) => (request[field] ?? 0) > 0]),
  ...(['frequency_penalty', 'presence_penalty'] as const).map(
    (field): Row => [field, '0 or nothing', (request) => (request[field] ?? 0) !== 0],
  ),
  [
    'return_routed_experts',
    'false or nothing',
    ({ return_routed_experts }) => return_routed_experts === true,
  ],
  ['reasoning', 'no max_tokens', ({ reasoning }) => (reasoning?.max_tokens ?? null) !== null],
  ['logits_processors', 'nothing', ({ logits_processors }) => (logits_processors?.length ?? 0) > 0],
  ...(['thinking_token_budget', 'prompt_logprobs', 'kv_transfer_params'] as const).map(
    (field): Row => [field, 'nothing', (request) => (request[field] ?? null) !== null],
  ),
];

function withoutBeams(expected: string, holds: Row[2], ...reads: ChatRule['reads']): ChatRule {
  const said = `${expected} with use_beam_search: true`;
  const name = `beam search without ${reads[0]}`;
  return contradiction(name, [...reads, 'use_beam_search'], said, (request) =>
    Boolean(request.use_beam_search && holds(request)),
  );
}

/** Rules about beam search. */
export const beamRules: readonly ChatRule[] = [
  withoutBeams(
    'nothing with a temperature above 0',
    ({ seed, temperature }) => (temperature ?? 0) > 0 && (seed ?? -1) !== -1,
    'seed',
    'temperature',
  ),
  ...ROWS.map(([field, expected, holds]) => withoutBeams(expected, holds, field)),
];
