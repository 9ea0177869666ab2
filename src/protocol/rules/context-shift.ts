/** What contradicts a context that shifts: one entry per field. */
import type { ChatCompletionRequest } from '../generated/request-types.ts';
import { type ChatRule, contradiction } from './rule.ts';

const ROWS: readonly (readonly [
  field: keyof ChatCompletionRequest,
  holds: (request: ChatCompletionRequest) => boolean,
])[] = [
  ['use_beam_search', ({ use_beam_search }) => use_beam_search === true],
  ['return_routed_experts', ({ return_routed_experts }) => return_routed_experts === true],
  ['logits_processors', ({ logits_processors }) => (logits_processors?.length ?? 0) > 0],
  ['kv_transfer_params', ({ kv_transfer_params }) => kv_transfer_params != null],
  ['truncate_prompt_tokens', ({ truncate_prompt_tokens }) => truncate_prompt_tokens != null],
];

/** The rules. */
export const contextShiftRules: readonly ChatRule[] = [
  ...ROWS.map(([field, holds]) =>
    contradiction(
      `a context that shifts without ${field}`,
      [field, 'context_shift'],
      'nothing with context_shift: true',
      (request) => Boolean(request.context_shift && holds(request)),
    ),
  ),
  contradiction(
    'n_keep needs a context that shifts',
    ['n_keep', 'context_shift'],
    'nothing without context_shift: true',
    ({ context_shift, n_keep }) => n_keep != null && !context_shift,
  ),
];
