/** What contradicts a context that shifts: one entry per field. */
import { fault } from '../faults.ts';
import type { ChatCompletionRequest } from '../generated/request-types.ts';
import type { ChatRule } from './rule.ts';

const CONTRADICTIONS: readonly (readonly [
  field: keyof ChatCompletionRequest,
  holds: (request: ChatCompletionRequest) => boolean,
])[] = [
  ['use_beam_search', ({ use_beam_search }) => use_beam_search === true],
  ['logits_processors', ({ logits_processors }) => (logits_processors?.length ?? 0) > 0],
  ['kv_transfer_params', ({ kv_transfer_params }) => kv_transfer_params != null],
  ['truncate_prompt_tokens', ({ truncate_prompt_tokens }) => truncate_prompt_tokens != null],
];

/** The rules. */
export const contextShiftRules: readonly ChatRule[] = [
  ...CONTRADICTIONS.map(
    ([field, holds]): ChatRule => ({
      name: `a context that shifts without ${field}`,
      reads: ['context_shift', field],
      check: (request) =>
        request.context_shift && holds(request)
          ? fault([field], 'conflict', 'nothing with context_shift: true', request[field])
          : null,
    }),
  ),
  {
    name: 'n_keep needs a context that shifts',
    reads: ['context_shift', 'n_keep'],
    check: ({ context_shift, n_keep }) =>
      n_keep != null && !context_shift
        ? fault(['n_keep'], 'conflict', 'nothing without context_shift: true', n_keep)
        : null,
  },
];
