/** Rules about a context that shifts. */
import type { RuleRow } from './rule-rows.ts';

const without = (field: string, value: unknown, shown: string, beside = {}): [string, RuleRow] => [
  `a context that shifts without ${field}`,
  {
    good: [{ [field]: value, ...beside }, { context_shift: true }],
    bad: [
      [
        { context_shift: true, [field]: value, ...beside },
        `${field}: expected no value with context_shift: true, got ${shown}`,
      ],
    ],
  },
];

/** By the name of the rule. */
export const CONTEXT_SHIFT_RULE_ROWS: Record<string, RuleRow> = {
  ...Object.fromEntries([
    without('use_beam_search', true, 'true'),
    without('return_routed_experts', true, 'true'),
    without('logits_processors', [() => {}], 'a list of 1'),
    without('kv_transfer_params', { do_remote_decode: true }, 'an object'),
    without('truncate_prompt_tokens', 5, '5'),
  ]),
  'n_keep needs a context that shifts': {
    good: [{ context_shift: true, n_keep: 4 }],
    bad: [[{ n_keep: 4 }, 'n_keep: expected no value without context_shift: true, got 4']],
  },
};
