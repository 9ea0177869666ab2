/** Options of `createRuntime` -> checked options with their defaults filled in. */
import type { ErrorDetail } from '../errors.ts';
import {
  type Complete,
  checkArguments,
  fault,
  faultOfSpeculation,
  type ModelOptions,
  type RuntimeOptions,
  type Speculation,
  throwFaults,
  withDefaults,
} from '../protocol/index.ts';

/** Checked options with every default filled in. Null if an option without a default was not given. */
export type CheckedOptions = Complete['RuntimeOptions'] & { readonly media: Complete['MediaOptions'] };

/** Options that are valid with YaRN only. */
const YARN_FIELDS = ['originalContext', 'extFactor', 'attnFactor', 'betaFast', 'betaSlow'] as const;

/** Rejects unknown options and wrong values with `INVALID_REQUEST`, naming the option. */
export function checkOptions(given: RuntimeOptions): CheckedOptions {
  const options = withDefaults('RuntimeOptions', checkArguments('RuntimeOptions', given));
  throwFaults([...faultsBetween(options, given.speculation !== undefined)]);
  const { speculation, speculative_config: config } = options;
  return {
    ...options,
    media: withDefaults('MediaOptions', options.media),
    speculation: config ? toSpeculation(config) : speculation,
  };
}

/** Yields the faults of options that exclude or require each other. */
function* faultsBetween(
  options: Complete['RuntimeOptions'],
  hasSpeculation: boolean,
): Generator<ErrorDetail> {
  const { model, models, hub, speculation, speculative_config: config } = options;
  yield* faultsOfModel(['model'], model);
  for (const [name, one] of Object.entries(models)) yield* faultsOfModel(['models', name], one);
  yield* faultsOfDiskCache([], options, options);
  yield* faultsOfDiskCache(['model'], model, options);
  for (const [name, one] of Object.entries(models)) yield* faultsOfDiskCache(['models', name], one, options);
  if (hub.endpoint !== undefined && !URL.canParse(hub.endpoint))
    yield fault(
      ['hub', 'endpoint'],
      'value',
      'an address that begins with http:// or https://',
      hub.endpoint,
    );
  yield* faultsOfDraft('speculation', speculation);
  if (!config) return;
  const at = ['speculative_config'];
  if (hasSpeculation) yield fault(at, 'conflict', 'no value with speculation', config);
  else if (!config.method && !config.model)
    yield fault(at, 'missing', 'an object with a method or a model', config);
  else yield* faultsOfDraft(at[0]!, toSpeculation(config));
}

/** Yields the faults of disk cache options. The disk cache stores entries of the prefix cache, so it requires one. */
function* faultsOfDiskCache(
  at: readonly string[],
  given: string | Pick<ModelOptions, 'diskCacheBytes'> | null,
  { prefixCache }: Complete['RuntimeOptions'],
): Generator<ErrorDetail> {
  const bytes = typeof given === 'string' ? 0 : (given?.diskCacheBytes ?? 0);
  if (bytes > 0 && !prefixCache)
    yield fault([...at, 'diskCacheBytes'], 'conflict', '0 with prefixCache: false', bytes);
}

function* faultsOfDraft(name: string, given: Speculation): Generator<ErrorDetail> {
  const expected = faultOfSpeculation(given);
  if (expected !== null)
    yield fault([name, 'model'], 'conflict', expected, (given as { readonly model?: unknown }).model);
}

/** Yields the faults of a model's settings that exclude each other. */
function* faultsOfModel(at: readonly string[], model: string | ModelOptions | null): Generator<ErrorDetail> {
  if (model === null || typeof model === 'string') return;
  const { cacheType, cacheBits, fusedAttention, rope, devices, mainGpu, tensorSplit, adapters = [] } = model;
  const conflict = (field: string, expected: string, got: unknown): ErrorDetail =>
    fault([...at, ...field.split('.')], 'conflict', expected, got);
  if (devices && mainGpu !== undefined) yield conflict('mainGpu', 'no value with devices', mainGpu);
  if (tensorSplit?.every((share) => share === 0))
    yield conflict('tensorSplit', 'shares, at least one above 0', tensorSplit);
  if (cacheType && cacheBits) yield conflict('cacheBits', 'no value with cacheType', cacheBits);
  if (cacheType?.startsWith('q') && fusedAttention === false)
    yield conflict('fusedAttention', `true with cacheType ${cacheType}`, false);
  const yarn = YARN_FIELDS.find((name) => rope?.[name] !== undefined);
  if (yarn && rope?.type !== 'yarn')
    yield conflict(`rope.${yarn}`, 'no value unless rope.type is yarn', rope?.[yarn]);
  for (const [i, adapter] of adapters.entries())
    if ((adapter.file === undefined) === (adapter.model === undefined))
      yield conflict(`adapters.${i}`, 'an object with either file or model', adapter);
}

/** Translates vLLM's settings of speculation into those of this library. */
function toSpeculation(config: NonNullable<RuntimeOptions['speculative_config']>): Speculation {
  const { method = 'draft', model, num_speculative_tokens: maxTokens, prompt_lookup_min: minMatch } = config;
  return { method: method === 'draft_model' ? 'draft' : method, maxTokens, minMatch, model };
}
