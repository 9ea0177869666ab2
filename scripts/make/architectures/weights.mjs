// A tensor's name and sizes -> how its random values are spread, so that states keep their size from layer to layer and logits have a spread.

/** Spread of the logits: like a trained model's. */
const LOGIT_DEVIATION = 2.5;
/** Control tokens and pieces of characters are so unlikely that no answer ends by itself, and all are text. */
export const FAINT = 0.05;

/** By what a tensor's name ends with: mean and deviation of its values, or what makes of a normal number its value. */
const KINDS = [
  [/norm(_\w+)?\.weight$/, () => [1, 0.1]],
  [/ssm_norm|layer_output_scale/, () => [1, 0.1]],
  [/rope_\w+\.weight$/, () => [1, 0]],
  [/ssm_a$/, (normal) => -Math.exp(0.5 * normal)],
  [/ssm_dt\.bias$/, () => [-1, 0.5]],
  [/ssm_d$/, () => [1, 0.3]],
  [/time_mix_lerp|time_mix_mu|channel_mix_lerp/, () => [0.5, 0.15]],
  [/time_mix_(w0|decay\.weight)/, () => [-1, 0.5]],
  [/\.bias$|sinks\.weight$|time_mix_(a0|v0|first|k_k|k_a|r_k)/, () => [0, 0.3]],
];

/**
 * A function from a normal number to a value of this tensor. `isOutput`: rows are those of tokens that logits are made of; `isTied`:
 * they are those of tokens that come in, too; `scale`: by which these are multiplied.
 */
export function drawnValue(name, dims, { isOutput, isTied, scale }) {
  // Small beside what layers add, so that an answer depends on all of its prompt.
  const inputDeviation = 0.3 / scale;
  if (name === 'token_embd.weight') return (normal) => inputDeviation * normal;
  if (isOutput) return (normal) => (LOGIT_DEVIATION / Math.sqrt(dims[0])) * normal;
  // Signs differ: a token's own logit is no larger than others where its row makes both.
  const size = isTied ? LOGIT_DEVIATION / (inputDeviation * Math.sqrt(dims[0])) : 1;
  if (/^(output_norm|token_embd_norm)\.weight$/.test(name))
    return (normal) => size * (Math.sign(normal) + 0.1 * normal);
  const [, kind] = KINDS.find(([pattern]) => pattern.test(name)) ?? [];
  const spread = kind?.(0);
  if (Array.isArray(spread)) return (normal) => spread[0] + spread[1] * normal;
  return kind ?? ((normal) => normal / Math.sqrt(dims[0]));
}

/** Returns true if a token of a vocabulary may appear in answers. */
export function isSpoken(text) {
  return /^[ -~Ġ▁]+$/.test(text) && !/^<.+>$/.test(text);
}
