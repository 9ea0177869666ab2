/** Rules about what a response reports besides the answer. */
import type { ErrorDetail } from '../../errors.ts';
import { fault } from '../faults.ts';
import { type ChatRule, conflict } from './rule.ts';

/** Rules about reporting. */
export const reportingRules: readonly ChatRule[] = [
  {
    name: 'top_logprobs need logprobs',
    reads: ['top_logprobs', 'logprobs'],
    check: ({ top_logprobs, logprobs }) =>
      (top_logprobs ?? 0) !== 0 && !logprobs
        ? conflict('top_logprobs', '0 without logprobs: true', top_logprobs)
        : null,
  },
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
  {
    name: 'prompt_logprobs do not stream',
    reads: ['prompt_logprobs', 'stream'],
    check: ({ prompt_logprobs, stream }) =>
      stream && (prompt_logprobs ?? 0) !== 0
        ? conflict('prompt_logprobs', 'nothing or 0 with stream: true', prompt_logprobs)
        : null,
  },
  {
    name: 'stream_options need stream',
    reads: ['stream_options', 'stream'],
    check: ({ stream_options, stream }) =>
      !stream && Object.values(stream_options ?? {}).some((value) => value !== undefined)
        ? conflict('stream_options', 'nothing without stream: true', stream_options)
        : null,
  },
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
