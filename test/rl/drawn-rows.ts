/** A seed -> packed rows for losses, ordinary and extreme ones: one token, equal rewards, everything masked, log-probabilities of -9999. */

/** Uniform numbers from 0 to 1, the same for the same seed. */
export function uniforms(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Every column of a row. */
export type DrawnRow = { readonly [Name in (typeof COLUMNS)[number]]: number[] };

const COLUMNS = [
  'new_logprobs',
  'old_logprobs',
  'original_logprobs',
  'ref_logprobs',
  'advantages',
  'weights',
  'mask',
  'sequence_ids',
  'entropies',
] as const;

/** One row of one to four answers. Every fourth is extreme. */
export function drawRow(seed: number): DrawnRow {
  const next = uniforms(seed);
  const row: DrawnRow = {
    new_logprobs: [],
    old_logprobs: [],
    original_logprobs: [],
    ref_logprobs: [],
    advantages: [],
    weights: [],
    mask: [],
    sequence_ids: [],
    entropies: [],
  };
  const kind =
    seed % 4 === 0 ? (['one token', 'equal', 'masked', 'impossible'] as const)[(seed / 4) % 4] : null;
  const near = (logprob: number, by: number): number => Math.min(-1e-3, logprob + by * (2 * next() - 1));
  const answers = kind === 'one token' ? 1 : 1 + Math.floor(4 * next());
  for (let answer = 0; answer < answers; answer++) {
    const advantage = kind === 'equal' ? 0 : 4 * next() - 2;
    const weight = 0.5 + next();
    const tokens = kind === 'one token' ? 1 : 1 + Math.floor(6 * next());
    for (let token = 0; token < tokens; token++) {
      const fresh = near(-1.5, 1.5);
      const old = near(fresh, 1);
      row.new_logprobs.push(fresh);
      row.old_logprobs.push(old);
      row.original_logprobs.push(near(old, 2));
      row.ref_logprobs.push(near(fresh, 1));
      row.advantages.push(advantage);
      row.weights.push(weight);
      row.mask.push(kind === 'masked' ? 0 : Number(next() < 0.8));
      row.sequence_ids.push(answer);
      row.entropies.push(3 * next());
      for (const name of ['new_logprobs', 'old_logprobs', 'original_logprobs', 'ref_logprobs'] as const)
        if (kind === 'impossible' && next() < 0.2)
          row[name][row[name].length - 1] = next() < 0.5 ? -9999 : -720;
    }
  }
  return row;
}
