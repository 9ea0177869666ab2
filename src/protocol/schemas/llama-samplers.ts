/** Request fields of llama.cpp's server: additional samplers with its names, defaults and meaning. */
import * as s from './schema.ts';

const LARGEST = 1e38;

function number(
  description: string,
  byDefault: number,
  bounds: Partial<s.Schema> = { minimum: 0 },
): s.Schema {
  return s.numberOrNull(description, { default: byDefault, maximum: LARGEST, ...bounds });
}

export const llamaSamplers: NonNullable<s.Schema['properties']> = {
  typical_p: number(
    'Locally typical sampling: samples only from the tokens whose surprise is closest to the entropy, until their probabilities exceed this. 1 is off.',
    1,
    { exclusiveMinimum: 0, maximum: 1 },
  ),
  xtc_probability: number(
    'XTC: the probability, at each token, of excluding the most probable tokens, see `xtc_threshold`. 0 is off.',
    0,
    { minimum: 0, maximum: 1 },
  ),
  xtc_threshold: number(
    'With `xtc_probability`: of the tokens with at least this probability, only the least probable is kept. Above 0.5 nothing is excluded.',
    0.1,
    { minimum: 0, maximum: 1 },
  ),
  dry_multiplier: number(
    'DRY: subtracts `dry_multiplier` * `dry_base`^(n - `dry_allowed_length`) from the logit of a token that would continue a repetition of n tokens. 0 is off.',
    0,
  ),
  dry_base: number('With `dry_multiplier`: how fast the penalty grows with the repetition.', 1.75, {
    minimum: 1,
  }),
  dry_allowed_length: s.integerOrNull('With `dry_multiplier`: shorter repetitions have no penalty.', {
    default: 2,
    minimum: 0,
    maximum: 2 ** 31 - 1,
  }),
  dry_penalty_last_n: s.integerOrNull(
    'With `dry_multiplier`: searches repetitions in this many last tokens, including the prompt. -1: in all.',
    { default: -1, minimum: -1, maximum: 2 ** 31 - 1 },
  ),
  dry_sequence_breakers: s.listOrNull(
    'With `dry_multiplier`: strings that end a repetition.',
    { type: 'string', minLength: 1 },
    { default: ['\n', ':', '"', '*'] },
  ),
  dynatemp_range: number(
    'Dynamic temperature: from `temperature` minus this if the model is certain, to `temperature` plus this if it is uncertain. 0 is off.',
    0,
  ),
  dynatemp_exponent: number(
    'With `dynatemp_range`: exponent of the normalized entropy in the temperature.',
    1,
  ),
  top_n_sigma: number(
    'Top-n-sigma: samples only from tokens whose logit is at most this many standard deviations of all logits below the best one, before `top_k`. 0 and below is off.',
    -1,
    { minimum: -1 },
  ),
  adaptive_target: s.numberOrNull(
    'Adaptive-p: prefers tokens whose probability, after the other samplers, is near this, and corrects it so that the mean of the drawn ones is. Below 0 is off.',
    { default: -1, minimum: -1, maximum: 1 },
  ),
  adaptive_decay: s.numberOrNull(
    'With `adaptive_target`: weight of earlier tokens in the mean, per token; it covers about 1 / (1 - this) tokens.',
    { default: 0.9, minimum: 0, maximum: 0.99 },
  ),
  mirostat: s.integerOrNull(
    'Mirostat 1 or 2: keeps the surprise of the answer close to `mirostat_tau`. Then `top_n_sigma`, `top_k`, `top_p`, `min_p`, `typical_p`, XTC, `dynatemp_range` and `adaptive_target` have no effect. 0 is off.',
    { default: 0, minimum: 0, maximum: 2 },
  ),
  mirostat_tau: number('With `mirostat`: the mean surprise of a token, in bits.', 5),
  mirostat_eta: number('With `mirostat`: its learning rate.', 0.1),
};
