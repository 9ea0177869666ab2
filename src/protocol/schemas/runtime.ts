/** Options of `createRuntime` and `inspectModel`. */
import { limits, modelOptionDefinitions, PATH } from './model-options.ts';
import * as s from './schema.ts';
import { DRAFT_METHODS, MAX_DRAFTS } from './speculation.ts';

const path = (description: string, more?: s.Schema): s.Schema =>
  s.string(description, { pattern: PATH, expected: 'a path of a folder', ...more });
const drafts = (description: string, least = 1): s.Schema =>
  s.integer(description, least, { maximum: MAX_DRAFTS });

/** Returns the schema of a model given as a path or URI, or as an object with options. */
const model = (description: string): s.Schema => ({
  description,
  if: { type: 'string' },
  else: s.ref('ModelOptions'),
  tsType: 'string | ModelOptions',
});

const runtimeLimits = {
  ...limits,
  maxSequences: { ...limits.maxSequences, default: 64 },
  maxBatchTokens: { ...limits.maxBatchTokens, default: 512 },
  diskCacheBytes: { ...limits.diskCacheBytes, default: 0 },
} satisfies Record<string, s.Schema>;
const gpu: s.Schema = s.ref('Gpu', 'Which device computes. `auto`: the best one available.', {
  default: 'auto',
});
const { contextSize, kvTokens, maxSequences, maxBatchTokens } = runtimeLimits;
const { cacheType, slidingWindow } = modelOptionDefinitions['ModelOptions']!.properties!;

export const runtimeDefinitions: s.Definitions = {
  Gpu: s.oneOf('Which device computes. `auto`: the best one with its package and driver installed.', [
    'auto',
    'cuda',
    'vulkan',
    'metal',
    false,
  ]),
  OnProgress: s.callback(
    'Called with how much of a model is downloaded or loaded, 0 to 1, and for a download its bytes, rate and time left.',
    "(model: string, fraction: number, phase: 'download' | 'load', download?: { readonly bytes: number; readonly totalBytes: number | null; readonly bytesPerSecond: number; readonly secondsLeft: number | null }) => void",
  ),
  HubOptions: s.object('Where models named by `hf:` URIs are downloaded from and stored.', [], {
    token: s.string('Gives access to gated and private repositories.', {
      pattern: '^[\\x21-\\x7e]+$',
      expected: 'a token: letters without blanks',
      secret: true,
    }),
    folder: path(
      'Where downloads are kept. Default: `~/.cache/onpolicy` for GGUF files, the cache of transformers.js for ONNX.',
    ),
    endpoint: s.string('Address of a mirror of the hub.', {
      pattern: '^[hH][tT][tT][pP][sS]?:',
      expected: 'an address that begins with http:// or https://',
    }),
    offline: s.boolean('Whether to use only what is in the folder. Default false.'),
  }),
  MediaOptions: s.object('Limits on the media of a request.', [], {
    maxBytes: s.integer('Bytes of one image or sound.', 1, { default: 20 * 2 ** 20, maximum: 2 ** 31 - 1 }),
    maxPixels: s.integer('Pixels of one image.', 1, { default: 2 ** 25, maximum: 2 ** 30 }),
    maxSeconds: s.integer('Seconds of one sound.', 1, { default: 600, maximum: 36_000 }),
    maxParts: s.integer('Images and sounds of one request.', 0, { default: 32 }),
    cacheBytes: s.integer('Bytes of embeddings cached for the next request with the same image.', 0, {
      default: 2 ** 28,
    }),
    maxQueued: s.integer('Encodes of one model that wait or run. Further ones fail with `TOO_LARGE`.', 1, {
      default: 256,
    }),
    folders: s.list('Folders whose files `file:` addresses may name.', { type: 'string' }, { default: [] }),
  }),
  MemoryOptions: s.object('How much memory the models of a runtime may take, and for how long.', [], {
    budget: s.integer(
      'Bytes of weights, caches and buffers of all loaded models together. Default: what the system has free.',
      1,
    ),
    idleMs: s.integer(
      'A model that was not used for this many milliseconds is unloaded. Null: it stays until its memory is needed.',
      0,
      { type: ['integer', 'null'], default: null },
    ),
  }),
  SpeculativeConfig: s.object("How tokens are drafted, in the form of vLLM's `speculative_config`.", [], {
    method: s.oneOf('Default with `model`: `draft_model`.', [...DRAFT_METHODS, 'draft_model']),
    model: s.stringOrNull('The smaller model that drafts.', {
      pattern: PATH,
      expected: 'a path, a name or an hf: URI of a model',
    }),
    num_speculative_tokens: drafts('Maximum number of draft tokens per step: `maxTokens`.'),
    prompt_lookup_min: drafts('Tokens before a draft that must match: `minMatch`.'),
    prompt_lookup_max: s.integer('No effect: the longest match is always used.', 1),
  }),
  RuntimeOptions: s.options('Options of {@link createRuntime}.', [], {
    model: model(
      'The model that answers when a request names none: a path or an `hf:` URI. Default: the embedded model.',
    ),
    models: {
      description: 'Names that requests may use for models.',
      type: 'object',
      additionalProperties: model('A model.'),
      default: {},
    },
    home: path(
      'Folder of registered models with their checkpoints and runs, created when there is something to store.',
      { default: '.onpolicy' },
    ),
    tracker: {
      description:
        'Also receives the runs, in addition to the home folder: `mlflowTracker`, or one of your own.',
      type: 'object',
      required: ['startRun', 'log', 'deleteRun'],
      properties: {
        startRun: s.callback('Begins the run of a model.'),
        log: s.callback('Adds metrics.'),
        deleteRun: s.callback('Deletes a run.'),
      },
      expected: 'an object with startRun, log and deleteRun',
      tsType: 'Tracker',
    },
    onStoreProblem: s.callback(
      'Called about damaged files in `home`, which are skipped, and about a failing tracker. Default: `log`.',
      '((problem: string) => void)',
    ),
    gpu,
    training: s.ref('TrainingOptions', 'How models are trained.'),
    scheduling: s.oneOf(
      'Order of waiting requests: by arrival, or by `priority` first.',
      ['fcfs', 'priority'],
      { default: 'fcfs' },
    ),
    prefixCache: s.flag(true, 'Whether finished prefixes stay cached for later requests.'),
    deterministic: s.flag(
      false,
      'Refuses models whose logits are not bit-identical in any batch, however the prompt is split and whether or not its beginning was cached. On Linux and Windows x64 and on Linux arm64, most GGUF models do so anyway. See docs/exactness.md#determinism.',
    ),
    logprobsMode: s.oneOf(
      'Log-probabilities of the model itself (`raw`) or after the whole sampling pipeline.',
      ['raw', 'processed'],
      { default: 'raw' },
    ),
    maxLogprobs: s.integer('Maximum of `top_logprobs`; null: the vocabulary.', 0, {
      type: ['integer', 'null'],
      default: null,
    }),
    allowRequestTemplate: s.flag(true, 'Whether a request may bring its own `chat_template`.'),
    kvTransferFolder: path(
      "Folder for prompts that `kv_transfer_params` hand from one process to another, the same for all of them. Default: a folder of the user in the system's temporary one. It must belong to the user, and nobody else may write to it. Saved prompts that are not fetched within an hour are deleted; other files stay.",
    ),
    hub: s.ref('HubOptions', 'Where models named by `hf:` URIs are downloaded from and stored.', {
      default: {},
    }),
    media: s.ref('MediaOptions', 'Limits on images and sounds of a request.'),
    speculation: s.ref(
      'Speculation',
      'How tokens are drafted, which a step then verifies together; requests can override it. It changes no token: with the same seed the answers are the same as without, except for rounding differences between batches.',
      { default: 'auto' },
    ),
    speculative_config: s.ref(
      'SpeculativeConfig',
      "The same with vLLM's names. Not together with `speculation`.",
    ),
    answerIndexBytes: s.integer(
      "Maximum bytes of one model's answers that are kept as a source of drafts, see `speculation`; old ones are dropped. 0 keeps none.",
      0,
      { default: 64 * 2 ** 20 },
    ),
    log: s.callback(
      'Receives every line that the engine logs, and notes about what takes long. Without it the only output is one line on the error stream when the decoder of images and sounds has to be built.',
      "((level: 'debug' | 'info' | 'warn' | 'error', text: string) => void)",
    ),
    onProgress: s.ref('OnProgress', 'Called while a model is downloaded or loaded, with the fraction done.'),
    memory: s.ref(
      'MemoryOptions',
      'How much memory models may take, and how long they stay. Least recently used models are unloaded to make room for others, never while they are used.',
    ),
    isolate: s.flag(
      false,
      'Whether everything that computes, trains and writes to `home` runs in a separate process, behind the same methods. If that process dies, its requests fail with `BACKEND_FAILED`, and it restarts for the next one. See docs/operations.md#a-process-of-its-own.',
    ),
    ...runtimeLimits,
  }),
  InspectOptions: s.options('Options of `inspectModel`.', [], {
    gpu,
    contextSize,
    kvTokens,
    maxSequences,
    maxBatchTokens,
    cacheType: cacheType!,
    slidingWindow: slidingWindow!,
    trainingTokens: s.integer('Tokens of the row that `training.bytes` is computed for.', 1, {
      default: 2048,
      maximum: 32_768,
    }),
    trainingModules: s.list(
      'Layers whose adapter `training.bytes` includes, as `modules` of `training`. Default: all but those of experts.',
      { type: 'string', minLength: 1 },
      { minItems: 1 },
    ),
    hub: s.ref('HubOptions', 'Where to find a model named by an `hf:` URI. Only headers are read.', {
      default: {},
    }),
  }),
};
