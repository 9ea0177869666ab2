/** Sampled rows -> log-probability entries as the wire shows them. */
import type { SampledRows } from '../native.ts';
import type { Logprob, TokenLogprob } from '../protocol/index.ts';
import type { Tokenizer } from '../tokenizer.ts';

/** JSON has no -Infinity: the wire's floor. */
export const LOGPROB_FLOOR = -9999;

const decoder = new TextDecoder();

/** The entry of one sampled token with its best alternatives, best first. `asIds`: tokens are written `token_id:N`. */
export function toTokenLogprob(
  tokenizer: Tokenizer,
  rows: SampledRows,
  row: number,
  asIds: boolean,
): TokenLogprob {
  const top: Logprob[] = [];
  for (let i = rows.topOffsets[row]!; i < rows.topOffsets[row + 1]!; i++)
    top.push(toLogprob(tokenizer, rows.topIds[i]!, rows.topLogprobs[i]!, asIds));
  return { ...toLogprob(tokenizer, rows.tokens[row]!, rows.logprobs[row]!, asIds), top_logprobs: top };
}

function toLogprob(tokenizer: Tokenizer, id: number, logprob: number, asIds: boolean): Logprob {
  const bytes = tokenizer.bytesOf(id);
  return {
    token: asIds ? `token_id:${id}` : decoder.decode(bytes),
    logprob: Math.max(logprob, LOGPROB_FLOOR),
    bytes: Array.from(bytes),
  };
}
