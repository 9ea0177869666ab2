/** Rules about what a response reports besides the answer. */
import type { ErrorDetail } from '../../errors.ts';
import { fault } from '../faults.ts';
import { type ChatRule, contradiction, isGiven } from './rule.ts';

export const reportingRules: readonly ChatRule[] = [
  contradiction(
    'top_logprobs need logprobs',
    ['top_logprobs', 'logprobs'],
    '0 without logprobs: true',
    ({ top_logprobs, logprobs }) => (top_logprobs ?? 0) !== 0 && !logprobs,
  ),
  contradiction(
    'logprob_token_ids need logprobs',
    ['logprob_token_ids', 'logprobs'],
    'no value without logprobs: true',
    ({ logprob_token_ids, logprobs }) => isGiven(logprob_token_ids) && !logprobs,
  ),
  ...(['top_logprobs', 'prompt_logprobs'] as const).map(
    (field): ChatRule => ({
      name: `${field} are capped`,
      reads: [field],
      isLimit: true,
      check: (request, { maxLogprobs }) => overCap(field, request[field], maxLogprobs),
    }),
  ),
  contradiction(
    'prompt_logprobs do not stream',
    ['prompt_logprobs', 'stream'],
    'no value or 0 with stream: true',
    ({ prompt_logprobs, stream }) => Boolean(stream) && (prompt_logprobs ?? 0) !== 0,
  ),
  contradiction(
    'progress needs stream',
    ['return_progress', 'stream'],
    'false without stream: true',
    ({ return_progress, stream }) => Boolean(return_progress) && !stream,
  ),
  contradiction(
    'stream_options need stream',
    ['stream_options', 'stream'],
    'no value without stream: true',
    ({ stream_options, stream }) =>
      !stream && Object.values(stream_options ?? {}).some((value) => value !== undefined),
  ),
];

function overCap(field: string, wanted: number | null | undefined, cap: number | null): ErrorDetail | null {
  if (cap === null || (wanted ?? 0) === 0) return null;
  if (wanted !== -1 && wanted! <= cap) return null;
  const expected = `an integer from 0 to ${cap}, the most this runtime reports`;
  return fault([field], 'range', expected, wanted, wanted === -1 ? undefined : { maximum: cap });
}
