/** Tokens -> logits of a model that can be computed by hand: a hash chooses the best token, and the ids behind it follow. */

/** The token that this model, with this adapter, always predicts after these tokens. */
export function predictedToken(tokens: readonly number[], vocabSize: number, adapter = 0): number {
  let hash = 17 + 101 * adapter;
  for (const token of tokens) hash = (Math.imul(hash, 31) + token + 1) >>> 0;
  return hash % vocabSize;
}

/** Logits after these tokens, all different, the predicted token first and each further id behind the one before it. */
export function hashLogits(tokens: readonly number[], vocabSize: number, adapter = 0): Float32Array {
  const first = predictedToken(tokens, vocabSize, adapter);
  const row = new Float32Array(vocabSize);
  let logit = 0;
  for (let i = 0; i < vocabSize; i++) {
    const id = (first + i) % vocabSize;
    logit -= 0.05 + (((first * 31 + id * 7) % 97) / 97) * 0.6;
    row[id] = logit;
  }
  return row;
}

/** Natural logarithms of the softmax. */
export function logSoftmax(row: Float32Array): Float32Array {
  const most = row.reduce((best, value) => Math.max(best, value), -Infinity);
  const sum = Math.log(row.reduce((total, value) => total + Math.exp(value - most), 0));
  return row.map((value) => value - most - sum);
}

/** The ids of the `count` largest finite values, best first, lowest id first among equals. */
export function bestIds(row: Float32Array, count: number): number[] {
  const ids = Array.from(row, (_, id) => id).filter((id) => row[id]! > -Infinity);
  return ids.sort((a, b) => row[b]! - row[a]! || a - b).slice(0, count);
}

/** Returns the candidates of a sampler after these tokens: different tokens with different scores, best first. */
export function predictedCandidates(
  tokens: readonly number[],
  vocabSize: number,
  count: number,
  adapter = 0,
): { ids: number[]; scores: number[] } {
  const logprobs = logSoftmax(hashLogits(tokens, vocabSize, adapter));
  const ids = bestIds(logprobs, count);
  return { ids, scores: ids.map((id) => logprobs[id]!) };
}
