/** Fields of a request that llama.cpp's server has: samplers behind the common ones, with its names, defaults and meaning. */
import { orNull, type Schema } from './schema.ts';

const LARGEST = 1e38;

function number(description: string, byDefault: number, bounds: Partial<Schema> = { minimum: 0 }): Schema {
  return orNull('number', { description, default: byDefault, maximum: LARGEST, ...bounds });
}

/** Fields by name. */
export const llamaSamplers: NonNullable<Schema['properties']> = {
  typical_p: number(
    'Locally typical sampling: draws only from the tokens whose surprise is nearest to the expected one, until their probabilities exceed this. 1 is off.',
    1,
    { exclusiveMinimum: 0, maximum: 1 },
  ),
  xtc_probability: number(
    'XTC: with this chance at each token, the most probable ones are excluded, see `xtc_threshold`. 0 is off.',
    0,
    { minimum: 0, maximum: 1 },
  ),
  xtc_threshold: number(
    'With `xtc_probability`: of the tokens at least this probable, only the least probable stays. Above 0.5 nothing is excluded.',
    0.1,
    { minimum: 0, maximum: 1 },
  ),
  dry_multiplier: number(
    'DRY: a token that would continue a repetition of n tokens loses `dry_multiplier` * `dry_base`^(n - `dry_allowed_length`) of its logit. 0 is off.',
    0,
  ),
  dry_base: number('With `dry_multiplier`: how fast the penalty grows with the repetition.', 1.75, {
    minimum: 1,
  }),
  dry_allowed_length: orNull('integer', {
    description: 'With `dry_multiplier`: shorter repetitions cost nothing.',
    default: 2,
    minimum: 0,
    maximum: 2 ** 31 - 1,
  }),
  dry_penalty_last_n: orNull('integer', {
    description:
      'With `dry_multiplier`: repetitions are looked for in so many last tokens, those of the prompt included. -1: in all.',
    default: -1,
    minimum: -1,
    maximum: 2 ** 31 - 1,
  }),
  dry_sequence_breakers: {
    description: 'With `dry_multiplier`: texts that end a repetition.',
    type: ['array', 'null'],
    default: ['\n', ':', '"', '*'],
    items: { type: 'string', minLength: 1 },
  },
  dynatemp_range: number(
    'Dynamic temperature: from `temperature` minus this where the model is sure, to `temperature` plus this where it is not. 0 is off.',
    0,
  ),
  dynatemp_exponent: number('With `dynatemp_range`: how the entropy becomes a temperature.', 1),
  mirostat: orNull('integer', {
    description:
      'Mirostat 1 or 2: keeps the surprise of the answer near `mirostat_tau`. Then `top_k`, `top_p`, `min_p`, `typical_p`, XTC and `dynatemp_range` have no effect. 0 is off.',
    default: 0,
    minimum: 0,
    maximum: 2,
  }),
  mirostat_tau: number('With `mirostat`: the mean surprise of a token, in bits.', 5),
  mirostat_eta: number('With `mirostat`: how fast it learns.', 0.1),
};

/** Their names. */
export const LLAMA_SAMPLERS = Object.keys(llamaSamplers) as readonly LlamaSampler[];

/** The name of one of them. */
export type LlamaSampler =
  | 'typical_p'
  | 'xtc_probability'
  | 'xtc_threshold'
  | 'dry_multiplier'
  | 'dry_base'
  | 'dry_allowed_length'
  | 'dry_penalty_last_n'
  | 'dry_sequence_breakers'
  | 'dynatemp_range'
  | 'dynatemp_exponent'
  | 'mirostat'
  | 'mirostat_tau'
  | 'mirostat_eta';
