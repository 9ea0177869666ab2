/** Rules about fields that exclude beam search. */
import { llamaSamplers } from '../../src/protocol/schemas/llama-samplers.ts';
import type { RuleRow } from './rule-rows.ts';

const beam = (
  field: string,
  good: readonly unknown[],
  bad: unknown,
  message: string,
  beside = {},
): [string, RuleRow] => [
  `beam search without ${field}`,
  {
    good: [
      { [field]: bad, n: 1, ...beside },
      ...good.map((value) => ({ use_beam_search: true, n: 4, [field]: value, ...beside })),
    ],
    bad: [[{ use_beam_search: true, n: 4, [field]: bad, ...beside }, `${field}: expected ${message}`]],
  },
];

/** By the rule's name. */
export const BEAM_RULE_ROWS: Record<string, RuleRow> = Object.fromEntries([
  beam('seed', [null, -1], 7, 'no value with use_beam_search: true and a temperature above 0, got 7', {
    temperature: 1,
  }),
  beam('temperature', [0, 1, null], 0.5, '0, 1 or no value with use_beam_search: true, got 0.5'),
  beam('top_p', [1, null], 0.9, '1 or no value with use_beam_search: true, got 0.9'),
  beam('top_k', [0, -1, null], 5, '0, -1 or no value with use_beam_search: true, got 5'),
  beam('min_p', [0, null], 0.1, '0 or no value with use_beam_search: true, got 0.1'),
  ...Object.entries(llamaSamplers)
    .filter(([, { default: off }]) => typeof off === 'number')
    .map(([field, { default: off }]) => {
      const bad = ['adaptive_decay', 'typical_p', 'xtc_threshold'].includes(field) ? 0.5 : off === 1 ? 3 : 1;
      return beam(field, [off, null], bad, `${off} or no value with use_beam_search: true, got ${bad}`);
    }),
  beam('dry_sequence_breakers', [null, []], ['a'], 'no value with use_beam_search: true, got a list of 1'),
  beam('frequency_penalty', [0, null], 1, '0 or no value with use_beam_search: true, got 1'),
  beam('presence_penalty', [0, null], -1, '0 or no value with use_beam_search: true, got -1'),
  beam('repetition_penalty', [1, null], 1.1, '1 or no value with use_beam_search: true, got 1.1'),
  beam('min_tokens', [0], 2, '0 or no value with use_beam_search: true, got 2'),
  beam('thinking_token_budget', [null], 5, 'no value with use_beam_search: true, got 5'),
  beam(
    'reasoning_budget_message',
    ['', null],
    'Enough.',
    'no value with use_beam_search: true, got "Enough."',
  ),
  beam('reasoning', [{}, null], { max_tokens: 5 }, 'no max_tokens with use_beam_search: true, got an object'),
  beam('logits_processors', [[], null], ['x'], 'no value with use_beam_search: true, got a list of 1'),
  beam(
    'return_routed_experts',
    [false, null],
    true,
    'false or no value with use_beam_search: true, got true',
  ),
  beam('prompt_logprobs', [null], 0, 'no value with use_beam_search: true, got 0'),
  beam('logprob_token_ids', [null, []], [1], 'no value with use_beam_search: true, got a list of 1', {
    logprobs: true,
  }),
  beam(
    'repetition_detection',
    [null],
    { max_pattern_size: 8, min_count: 3 },
    'no value with use_beam_search: true, got an object',
  ),
  ...['return_timings', 'timings_per_token', 'return_progress'].map((field) =>
    beam(field, [false, null], true, 'false or no value with use_beam_search: true, got true', {
      stream: true,
    }),
  ),
  beam('kv_transfer_params', [null], {}, 'no value with use_beam_search: true, got an object'),
]);
