/** What a caller gives to `createRuntime` -> checked options with their defaults filled in. */

import type { HubOptions } from './backends/index.ts';
import { KV_TRANSFER_FOLDER } from './engine/index.ts';
import { MEDIA_DEFAULTS, type MediaLimits, type MediaOptions } from './media/index.ts';
import type {
  AdapterOption,
  MemoryOptions,
  ModelOptions,
  OnProgress,
  ServingLimits,
} from './models/index.ts';
import type { Gpu, RopeOptions } from './native/index.ts';
import {
  type Check,
  checkField,
  checkFields,
  fail,
  fieldsOf,
  integer,
  ofType,
  oneOf,
  positive,
} from './option-checks.ts';
import {
  atTheDoor,
  checkArguments,
  DRAFT_METHODS,
  describe,
  faultOfSpeculation,
  MAX_DRAFTS,
  type Speculation,
  type SpeculationSettings,
  type TrainingOptions,
} from './protocol/index.ts';
import type { Tracker } from './store/index.ts';

/** How tokens are drafted, as vLLM's `speculative_config` says it. */
export type SpeculativeConfig = {
  /** Default with `model`: `draft_model`. */
  readonly method?: SpeculationSettings['method'] | 'draft_model';
  /** The smaller model that drafts. */
  readonly model?: string;
  /** Drafts of one step at most: `maxTokens`. */
  readonly num_speculative_tokens?: number;
  /** Tokens that must have stood before a draft: `minMatch`. */
  readonly prompt_lookup_min?: number;
  /** No effect: the longest match is always looked for. */
  readonly prompt_lookup_max?: number;
};

/** Options of {@link createRuntime}. */
export type RuntimeOptions = ServingLimits & {
  /** The model that answers when a request names none: a path or an `hf:` URI. Default: the embedded model. */
  readonly model?: string | ModelOptions;
  /** Names that requests may use for models. */
  readonly models?: Readonly<Record<string, string | ModelOptions>>;
  /** Folder of registered models with their checkpoints and runs, made when there is something to keep. Default `.onpolicy`. */
  readonly home?: string;
  /** Gets runs as well, beside the home folder: `mlflowTracker`, or one of your own. */
  readonly tracker?: Tracker;
  /** Hears of damaged files in `home`, which are skipped, and of a tracker that fails. Default: `log`. */
  readonly onStoreProblem?: (problem: string) => void;
  /** Which processor computes. Default `auto`: the best one that is there. */
  readonly gpu?: Gpu;
  /** How models are trained. */
  readonly training?: TrainingOptions;
  /** Order of waiting requests: by arrival (default), or by `priority` first. */
  readonly scheduling?: 'fcfs' | 'priority';
  /** Whether finished prefixes stay cached for later requests. Default true. */
  readonly prefixCache?: boolean;
  /**
   * Whether a request has the same logits, to the last bit, whatever runs beside it, however its prompt is computed and whether its
   * beginning was cached. Models that cannot keep that are refused when they load. Default false. See docs/determinism.md.
   */
  readonly deterministic?: boolean;
  /** Log-probabilities of the model itself (`raw`, default) or after the whole sampling pipeline. */
  readonly logprobsMode?: 'raw' | 'processed';
  /** Most alternatives that `top_logprobs` may ask for; null, the default: the vocabulary. */
  readonly maxLogprobs?: number | null;
  /** Whether a request may bring its own `chat_template`. Default true. */
  readonly allowRequestTemplate?: boolean;
  /**
   * Where prompts lie that `kv_transfer_params` hand from one process to another: the same folder for all of them. Default:
   * a folder of the user in the system's temporary one. It must belong to the user, and nobody else may write to it. Saved prompts
   * that nobody came for within an hour are deleted; other files stay.
   */
  readonly kvTransferFolder?: string;
  /** Where models named by `hf:` URIs come from and go to. */
  readonly hub?: HubOptions;
  /** What pictures and sounds of a request may be. */
  readonly media?: MediaOptions;
  /**
   * How tokens are drafted that a step then checks together, where a request does not say. It changes no token: with the same
   * seed the answers are those without, as far as other sums of a step round alike. Default `'auto'`.
   */
  readonly speculation?: Speculation;
  /** The same with vLLM's names. Not together with `speculation`. */
  readonly speculative_config?: SpeculativeConfig;
  /**
   * Bytes that the answers of one model may take as a source of drafts, see `speculation`; old ones give way. Default 64 MiB;
   * 0 keeps none.
   */
  readonly answerIndexBytes?: number;
  /**
   * Receives every line that the engine logs, and what takes long. Without it the only thing written to the terminal is one line
   * on the error stream when the decoder of pictures and sounds has to be built.
   */
  readonly log?: (level: 'debug' | 'info' | 'warn' | 'error', text: string) => void;
  /** Called while a model is downloaded or loaded, with the fraction done. */
  readonly onProgress?: OnProgress;
  /**
   * How much memory models may take, and how long they stay. Least recently used models are unloaded to make room for others, never
   * while they are used.
   */
  readonly memory?: MemoryOptions;
  /**
   * Whether all that computes, trains and writes to `home` is in a process of its own, behind the same methods. When that dies, its
   * requests fail with `BACKEND_FAILED`, and it starts again for the next one. Default false. See docs/errors.md.
   */
  readonly isolate?: boolean;
};

/** The same after the check: every default filled in. */
export type CheckedOptions = RuntimeOptions &
  Required<
    Pick<
      RuntimeOptions,
      | 'home'
      | 'gpu'
      | 'scheduling'
      | 'prefixCache'
      | 'logprobsMode'
      | 'maxLogprobs'
      | 'allowRequestTemplate'
      | 'kvTransferFolder'
      | 'speculation'
      | 'answerIndexBytes'
      | 'hub'
    >
  > & { readonly media: MediaLimits };

const DEFAULTS = {
  home: '.onpolicy',
  gpu: 'auto',
  scheduling: 'fcfs',
  prefixCache: true,
  logprobsMode: 'raw',
  maxLogprobs: null,
  allowRequestTemplate: true,
  kvTransferFolder: KV_TRANSFER_FOLDER,
  speculation: 'auto',
  answerIndexBytes: 64 * 2 ** 20,
  hub: {},
} as const;

const isPath = (value: unknown): boolean =>
  typeof value === 'string' && value !== '' && !value.includes('\0');
/** What a header can hold. */
const isPlainText = (value: unknown): boolean => typeof value === 'string' && /^[\x21-\x7e]+$/.test(value);
const isWebAddress = (value: unknown): boolean =>
  typeof value === 'string' && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol);

const LIMITS: Record<keyof ServingLimits, Check> = {
  contextSize: integer(2),
  kvTokens: integer(2),
  maxSequences: integer(1, 256),
  maxWaiting: integer(0),
  maxBatchTokens: integer(1, 65_536),
  threads: integer(1, 512),
};

const IMAGE_TOKENS: Record<'min' | 'max', Check> = { min: integer(1), max: integer(1) };

const MEDIA_FIELDS: Record<keyof MediaOptions, Check> = {
  maxBytes: integer(1, 2 ** 31 - 1),
  maxPixels: integer(1, 2 ** 30),
  maxSeconds: integer(1, 36_000),
  maxParts: integer(0),
  cacheBytes: integer(0),
  maxQueued: integer(1),
  folders: (value) =>
    Array.isArray(value) && value.every((name) => typeof name === 'string')
      ? null
      : 'an array of paths of folders',
};

const ROPE_FIELDS: Record<keyof RopeOptions, Check> = {
  type: oneOf('none', 'linear', 'yarn'),
  factor: positive,
  base: positive,
  originalContext: integer(1),
  extFactor: (value) => (Number.isFinite(value) && (value as number) >= 0 ? null : 'a number from 0 up'),
  attnFactor: positive,
  betaFast: positive,
  betaSlow: positive,
};

/** Options of YaRN alone. */
const YARN_FIELDS = ['originalContext', 'extFactor', 'attnFactor', 'betaFast', 'betaSlow'] as const;

/** Settings of a model that exclude each other. */
function checkTogether(model: ModelOptions): void {
  const { cacheType, cacheBits, fusedAttention, rope, devices, mainGpu } = model;
  if (devices !== undefined && mainGpu !== undefined)
    fail('model.mainGpu', 'nothing beside devices', mainGpu);
  if (cacheType !== undefined && cacheBits !== undefined)
    fail('model.cacheBits', 'nothing beside cacheType', String(cacheBits));
  if (cacheType?.startsWith('q') && fusedAttention === false)
    fail('model.fusedAttention', `true with cacheType ${cacheType}`, 'false');
  const yarn = rope?.type === 'yarn' ? undefined : YARN_FIELDS.find((name) => rope?.[name] !== undefined);
  if (yarn) fail(`model.rope.${yarn}`, 'nothing unless rope.type is yarn', String(rope?.[yarn]));
}

const MODEL_FIELDS: Record<keyof ModelOptions, Check> = {
  ...LIMITS,
  path: ofType('string'),
  mmproj: (value) => (value === null || typeof value === 'string' ? null : 'a path, an hf: URI or null'),
  imageTokens: fieldsOf('model.imageTokens', IMAGE_TOKENS),
  gpuLayers: (value) => (value === 'auto' ? null : integer(0)(value) && 'auto or an integer from 0 up'),
  devices: (value) =>
    Array.isArray(value) && value.length > 0 && value.every((name) => typeof name === 'string')
      ? null
      : 'an array of names of GPUs',
  mainGpu: ofType('string'),
  tensorSplit: (value) =>
    Array.isArray(value) &&
    value.every((share) => Number.isFinite(share) && share >= 0) &&
    value.some((share) => share > 0)
      ? null
      : 'an array of numbers from 0 up, one of them above 0',
  cacheOnGpu: ofType('boolean'),
  fusedAttention: ofType('boolean'),
  cacheBits: (value) => (value === 16 || value === 32 ? null : '16 or 32'),
  cacheType: oneOf('f32', 'f16', 'q8_0', 'q4_0'),
  slidingWindow: oneOf('full', 'window'),
  rope: fieldsOf('model.rope', ROPE_FIELDS),
  mmap: ofType('boolean'),
  mlock: ofType('boolean'),
  products: oneOf('auto', 'batch', 'plain'),
  pooling: oneOf('mean', 'cls', 'last'),
  adapters: (value) => {
    if (!Array.isArray(value)) return 'an array of adapters';
    for (const [i, adapter] of value.entries()) checkField(`model.adapters.${i}`, adapter, isAdapter);
    return null;
  },
  chatTemplate: ofType('string'),
  toolFormat: ofType('string'),
  isolate: ofType('boolean'),
};

const ADAPTER_FIELDS: Record<keyof AdapterOption, Check> = {
  file: (value) => (isPath(value) ? null : 'a path'),
  model: (value) => (isPath(value) ? null : 'a name'),
  scale: (value) => (Number.isFinite(value) ? null : 'a number'),
};

const isAdapter: Check = (value) => {
  const expected = fieldsOf('model.adapters', ADAPTER_FIELDS)(value);
  if (expected !== null) return expected;
  const { file, model } = value as AdapterOption;
  return (file === undefined) === (model === undefined) ? 'an object with either file or model' : null;
};

const MEMORY_FIELDS: Record<keyof MemoryOptions, Check> = {
  budget: integer(1),
  idleMs: (value) => (value === null ? null : integer(0)(value) && `${integer(0)(value)} or null`),
};

const HUB_FIELDS: Record<keyof HubOptions, Check> = {
  token: (value) => (isPlainText(value) ? null : 'a token: letters without blanks'),
  folder: (value) => (isPath(value) ? null : 'a path of a folder'),
  endpoint: (value) => (isWebAddress(value) ? null : 'an address that begins with http:// or https://'),
  offline: ofType('boolean'),
};

const isNamed: Check = (value) =>
  value === null || isPath(value) ? null : 'a path, a name or an hf: URI of a model';

const SPECULATION_FIELDS: Record<keyof SpeculationSettings, Check> = {
  method: oneOf(...DRAFT_METHODS),
  model: isNamed,
  maxTokens: integer(1, MAX_DRAFTS),
  minMatch: integer(1, MAX_DRAFTS),
};

const SPECULATIVE_CONFIG_FIELDS: Record<keyof SpeculativeConfig, Check> = {
  method: oneOf(...DRAFT_METHODS, 'draft_model'),
  model: isNamed,
  num_speculative_tokens: integer(1, MAX_DRAFTS),
  prompt_lookup_min: integer(1, MAX_DRAFTS),
  prompt_lookup_max: integer(1),
};

const isModel: Check = (value) => {
  if (typeof value === 'string') return null;
  const expected = fieldsOf('model', MODEL_FIELDS, 'path')(value);
  if (expected !== null) return `a path, an hf: URI or ${expected}`;
  checkTogether(value as ModelOptions);
  return null;
};

const FIELDS: Record<keyof RuntimeOptions, Check> = {
  ...LIMITS,
  model: isModel,
  models: (value) => {
    if (typeof value !== 'object' || value === null) return 'an object of names and models';
    for (const [name, model] of Object.entries(value)) checkField(`models.${name}`, model, isModel);
    return null;
  },
  home: (value) => (isPath(value) ? null : 'a path of a folder'),
  tracker: (value) =>
    ['startRun', 'log', 'deleteRun'].every(
      (name) => typeof (value as Record<string, unknown>)?.[name] === 'function',
    )
      ? null
      : 'an object with startRun, log and deleteRun',
  gpu: oneOf('auto', 'cuda', 'vulkan', 'metal', false),
  training: (training) => {
    checkArguments('RuntimeTraining', { training });
    return null;
  },
  hub: fieldsOf('hub', HUB_FIELDS),
  media: fieldsOf('media', MEDIA_FIELDS),
  memory: fieldsOf('memory', MEMORY_FIELDS),
  scheduling: oneOf('fcfs', 'priority'),
  prefixCache: ofType('boolean'),
  deterministic: ofType('boolean'),
  logprobsMode: oneOf('raw', 'processed'),
  maxLogprobs: (value) => (value === null ? null : integer(0)(value)),
  allowRequestTemplate: ofType('boolean'),
  kvTransferFolder: ofType('string'),
  speculation: (value) => {
    if (value === false || value === 'auto') return null;
    const expected = fieldsOf('speculation', SPECULATION_FIELDS, 'method')(value);
    if (expected !== null) return `false, auto or ${expected}`;
    const settings = value as SpeculationSettings;
    const model = faultOfSpeculation(settings);
    if (model !== null) fail('speculation.model', model, describe(settings.model));
    return null;
  },
  speculative_config: fieldsOf('speculative_config', SPECULATIVE_CONFIG_FIELDS),
  answerIndexBytes: integer(0),
  isolate: ofType('boolean'),
  log: ofType('function'),
  onStoreProblem: ofType('function'),
  onProgress: ofType('function'),
};

/** Rejects unknown options and wrong values with `INVALID_REQUEST`, naming the option. */
export function checkOptions(options: RuntimeOptions): CheckedOptions {
  if (typeof options !== 'object' || options === null) fail('options', 'an object', describe(options));
  atTheDoor(options, () => checkFields('options', options, FIELDS));
  const given: RuntimeOptions = Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  );
  const media = { ...MEDIA_DEFAULTS, ...options.media };
  return { ...DEFAULTS, ...given, media, ...fromSpeculativeConfig(given) };
}

function fromSpeculativeConfig(options: RuntimeOptions): { speculation?: Speculation } {
  const { speculation, speculative_config: config } = options;
  if (!config) return {};
  if (speculation !== undefined)
    fail('speculative_config', 'nothing beside speculation', JSON.stringify(config));
  const { model, num_speculative_tokens: maxTokens, prompt_lookup_min: minMatch } = config;
  const given = config.method ?? (model === undefined ? undefined : 'draft');
  if (given === undefined)
    fail('speculative_config', 'an object with a method or a model', JSON.stringify(config));
  const settings = {
    method: given === 'draft_model' ? ('draft' as const) : given,
    maxTokens,
    minMatch,
    model,
  };
  const expected = faultOfSpeculation(settings);
  if (expected !== null) fail('speculative_config.model', expected, describe(model));
  return { speculation: settings };
}
