/** Sampled rows -> log-probability entries in the form of the wire. */
import type { SampledRows } from '../engine/native/index.ts';
import type { Tokenizer } from '../engine/tokenizer/index.ts';
import type { Logprob, TokenLogprob } from '../protocol/index.ts';

/** The lowest log-probability on the wire, because JSON has no -Infinity. */
export const LOGPROB_FLOOR = -9999;

/** Text and bytes of a token. All entries share them, so the bytes are frozen. */
type ShownToken = { readonly text: string; readonly bytes: number[] };

/** Highest number of cached tokens. The texts of further ones are decoded each time. */
const MOST_SHOWN = 32_768;
const shownTokens = new WeakMap<Tokenizer, Map<number, ShownToken>>();
const decoder = new TextDecoder();

/** Returns the entry of one sampled token with its best alternatives, best first. `asIds`: tokens are written as `token_id:N`. */
export function toTokenLogprob(
  tokenizer: Tokenizer,
  rows: SampledRows,
  row: number,
  asIds: boolean,
): TokenLogprob {
  const top: Logprob[] = [];
  for (let i = rows.topOffsets[row]!; i < rows.topOffsets[row + 1]!; i++)
    top.push(toLogprob(tokenizer, rows.topIds[i]!, rows.topLogprobs[i]!, asIds));
  const { token, logprob, bytes } = toLogprob(tokenizer, rows.tokens[row]!, rows.logprobs[row]!, asIds);
  return { token, logprob, bytes, top_logprobs: top };
}

/** Returns the entry of one token. */
export function toLogprob(tokenizer: Tokenizer, id: number, logprob: number, asIds: boolean): Logprob {
  const { text, bytes } = show(tokenizer, id);
  return { token: asIds ? `token_id:${id}` : text, logprob: floored(logprob), bytes };
}

function floored(logprob: number): number {
  return Math.max(logprob, LOGPROB_FLOOR);
}

function show(tokenizer: Tokenizer, id: number): ShownToken {
  let shown = shownTokens.get(tokenizer);
  if (!shown) {
    shown = new Map();
    shownTokens.set(tokenizer, shown);
  }
  const known = shown.get(id);
  if (known) return known;
  const bytes = tokenizer.bytesOf(id);
  const token = { text: decoder.decode(bytes), bytes: Object.freeze(Array.from(bytes)) as number[] };
  if (shown.size < MOST_SHOWN) shown.set(id, token);
  return token;
}
