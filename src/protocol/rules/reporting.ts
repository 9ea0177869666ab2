/** Rules about what a response reports besides the answer. */
import type { ErrorDetail } from '../../errors.ts';
import { fault } from '../faults.ts';
import { type ChatRule, contradiction } from './rule.ts';

/** Rules about reporting. */
export const reportingRules: readonly ChatRule[] = [
  contradiction(
    'top_logprobs need logprobs',
    ['top_logprobs', 'logprobs'],
    '0 without logprobs: true',
    ({ top_logprobs, logprobs }) => (top_logprobs ?? 0) !== 0 && !logprobs,
  ),
  {
    name: 'top_logprobs are capped',
    reads: ['top_logprobs'],
    isLimit: true,
    check: ({ top_logprobs }, { maxLogprobs }) => overCap('top_logprobs', top_logprobs, maxLogprobs),
  },
  {
    name: 'prompt_logprobs are capped',
    reads: ['prompt_logprobs'],
    isLimit: true,
    check: ({ prompt_logprobs }, { maxLogprobs }) => overCap('prompt_logprobs', prompt_logprobs, maxLogprobs),
  },
  contradiction(
    'prompt_logprobs do not stream',
    ['prompt_logprobs', 'stream'],
    'nothing or 0 with stream: true',
    ({ prompt_logprobs, stream }) => Boolean(stream) && (prompt_logprobs ?? 0) !== 0,
  ),
  contradiction(
    'stream_options need stream',
    ['stream_options', 'stream'],
    'nothing without stream: true',
    ({ stream_options, stream }) =>
      !stream && Object.values(stream_options ?? {}).some((value) => value !== undefined),
  ),
];

function overCap(field: string, wanted: number | null | undefined, cap: number | null): ErrorDetail | null {
  if (cap === null || (wanted ?? 0) === 0) return null;
  if (wanted === -1)
    return fault([field], 'range', `an integer from 0 to ${cap}, the most this runtime reports`, -1);
  if (wanted! <= cap) return null;
  return fault([field], 'range', `an integer from 0 to ${cap}, the most this runtime reports`, wanted, {
    maximum: cap,
  });
}
