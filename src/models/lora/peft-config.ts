/** The text of `adapter_config.json` -> the scale of each layer's factors; unsupported settings are refused by name. */
import { parseJson } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';

/** Ranks and scales that PEFT would apply. */
export type PeftScales = {
  /** Returns the inner size of a layer's factors, by its path in the Hugging Face model. */
  readonly rankOf: (path: string) => number;
  /** Returns the scale of the product of a layer's factors. */
  readonly scaleOf: (path: string) => number;
};

type Config = Readonly<Record<string, unknown>>;

/** Settings that change what a layer computes beyond two factors and a scale. */
const REFUSED = {
  use_dora: 'DoRA',
  use_qalora: 'QALoRA',
  fan_in_fan_out: 'fan_in_fan_out',
  lora_bias: 'lora_bias',
  layer_replication: 'layer_replication',
  target_parameters: 'target_parameters',
  trainable_token_indices: 'trainable_token_indices',
  modules_to_save: 'modules_to_save',
  alora_invocation_tokens: 'an activated LoRA (aLoRA)',
} as const;

/** Initializations that change the base model's weights, too. */
const CHANGES_BASE = /^(pissa|olora|loftq|corda)/;

/**
 * Reads the configuration of a PEFT folder.
 * @throws OnpolicyError `MODEL_INVALID` if it does not describe a LoRA adapter, `UNSUPPORTED` for variants of LoRA
 */
export function readPeftConfig(text: string): PeftScales {
  const config = parse(text);
  if (config['peft_type'] !== 'LORA') fail('peft_type', '"LORA"', config['peft_type']);
  for (const [key, name] of Object.entries(REFUSED)) {
    const value = config[key];
    const isEmpty = Array.isArray(value) && value.length === 0;
    if (value !== undefined && value !== null && value !== false && !isEmpty)
      throw new OnpolicyError(
        'UNSUPPORTED',
        `adapter_config.json: ${key}: ${name} is not served; merge such an adapter into its model`,
      );
  }
  const start = config['init_lora_weights'];
  if (typeof start === 'string' && CHANGES_BASE.test(start))
    throw new OnpolicyError(
      'UNSUPPORTED',
      `adapter_config.json: init_lora_weights: ${start} changes the weights of the model, too; save it as a plain LoRA`,
    );
  const rankOf = perLayer(
    config,
    'r',
    'rank_pattern',
    (rank) => Number.isInteger(rank) && rank > 0,
    'an integer from 1 up',
  );
  const alphaOf = perLayer(config, 'lora_alpha', 'alpha_pattern', Number.isFinite, 'a number');
  const isStabilized = config['use_rslora'] === true;
  return {
    rankOf,
    scaleOf: (path) => alphaOf(path) / (isStabilized ? Math.sqrt(rankOf(path)) : rankOf(path)),
  };
}

/**
 * Returns a function for a number that all layers share, with exceptions for some. The keys of exceptions are the end of a path, or a
 * pattern of it.
 */
function perLayer(
  config: Config,
  key: string,
  patternKey: string,
  isRight: (value: number) => boolean,
  expected: string,
): (path: string) => number {
  const check = (field: string, value: unknown): number =>
    typeof value === 'number' && isRight(value) ? value : fail(field, expected, value);
  const general = check(key, config[key]);
  const patterns = config[patternKey] ?? {};
  if (typeof patterns !== 'object') return fail(patternKey, 'an object', patterns);
  const special = Object.entries(patterns as Config).map(
    ([pattern, value]) => [toPattern(patternKey, pattern), check(`${patternKey}.${pattern}`, value)] as const,
  );
  return (path) => special.find(([pattern]) => pattern.test(path))?.[1] ?? general;
}

function toPattern(key: string, pattern: string): RegExp {
  try {
    return new RegExp(`(^|.*\\.)(${pattern.replace(/^\^/, '')})$`);
  } catch {
    return fail(key, 'names or patterns of layers', pattern);
  }
}

function parse(text: string): Config {
  const config = parseJson(text);
  if (typeof config === 'object' && config !== null) return config as Config;
  throw new OnpolicyError('MODEL_INVALID', 'adapter_config.json: expected a JSON object');
}

function fail(key: string, expected: string, got: unknown): never {
  const shown = (JSON.stringify(got) ?? 'nothing').slice(0, 200);
  throw new OnpolicyError('MODEL_INVALID', `adapter_config.json: ${key}: expected ${expected}, got ${shown}`);
}
