/** Fields of requests whose answers may grow beyond the context. */
import * as s from './schema.ts';

export const CONTEXT_SHIFT = {
  context_shift: s.booleanOrNull(
    'When the context is full, drops the oldest tokens after the first `n_keep` and continues, both for a prompt that is too long and during an answer. `context_shift` of a choice reports what was dropped.',
    { default: false, bounds: 'not with beams, `logits_processors`, `kv_transfer_params` or media' },
  ),
  n_keep: s.integerOrNull(
    'With `context_shift`: leading tokens that are never dropped. Absent: the system messages at the beginning, or what the tokenizer puts before a text.',
    { minimum: 0, bounds: 'at most half the context' },
  ),
} satisfies Record<string, s.Schema>;
