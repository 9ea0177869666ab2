/** Sampled tokens as the addon would hand them over. */
import type { SampledRows } from '../../src/engine/native/index.ts';

/** One row per token. The log-probability of token t is -t / 1000; its alternatives are itself and the token after it. */
export function sampledRows(tokens: readonly number[]): SampledRows {
  const count = tokens.length;
  return {
    status: new Uint8Array(count),
    tokens: Int32Array.from(tokens),
    isFinal: new Uint8Array(count),
    logprobs: Float32Array.from(tokens, (token) => -token / 1000),
    ranks: new Int32Array(count).fill(1),
    topOffsets: Int32Array.from({ length: count + 1 }, (_, row) => 2 * row),
    topIds: Int32Array.from(tokens.flatMap((token) => [token, token + 1])),
    topLogprobs: Float32Array.from(tokens.flatMap((token) => [-token / 1000, -9])),
  };
}
