/** Options of a model: how it is loaded and served. */
import * as s from './schema.ts';
import { MAX_DRAFTS } from './speculation.ts';

/** Limits of one model's engine. */
export const limits = {
  contextSize: s.integer(
    "Tokens of one prompt and its answer together. Default: the model's own limit, at most 8,192.",
    2,
  ),
  kvTokens: s.integer(
    "Size of the KV cache in tokens. Default: `contextSize` for every sequence, if that takes up to 4 GiB, else 32,768. Where all fit, the cache is not unified if that is faster, as it is without this library's attention: each sequence has its own cells. Else all share one pool.",
    2,
  ),
  maxSequences: s.integer('Sequences that run at the same time. Further ones wait.', 1, { maximum: 256 }),
  maxWaiting: s.integer(
    'Requests that may wait for a model beside as many as run; further ones fail with `OVERLOADED` at once. Default: no limit.',
    0,
  ),
  maxBatchTokens: s.integer('Tokens of one step at most.', 1, { maximum: 65_536 }),
  diskCacheBytes: s.integer(
    'Bytes that caches of prompts may take on the disk, in `home`: all of them together, old ones give way. A prompt that begins like one of an earlier process then goes on from there. 0 keeps none. See docs/choosing-a-model.md.',
    0,
  ),
  threads: s.integer(
    'CPU threads at most: fewer run while other programs or models take cores, see `stats().threads`. Default: one per core but for efficiency cores; one for a model of less than ten million parameters.',
    1,
    { maximum: 512 },
  ),
} satisfies Record<string, s.Schema>;

/** What a file system can hold. */
export const PATH = '^[^\\0]+$';

const above0 = (description: string): s.Schema => s.number(description, { exclusiveMinimum: 0 });
const text = (description: string): s.Schema => s.string(description);

/** Definitions of these options. */
export const modelOptionDefinitions: s.Definitions = {
  ServingLimits: s.object("Limits of one model's engine.", [], limits),
  CacheType: s.oneOf(
    'How a number of the KV cache is stored. The quantized ones have a scale of 16 bits for each 32 numbers.',
    ['f32', 'f16', 'q8_0', 'q4_0'],
  ),
  RopeOptions: s.object(
    'How positions turn into rotations, for contexts longer than a model was trained for. What is absent is as its file says.',
    [],
    {
      type: s.oneOf(
        '`linear`: positions are divided by `factor`. `yarn`: low frequencies are, high ones stay. `none`: neither.',
        ['none', 'linear', 'yarn'],
      ),
      factor: above0('How many times as long the context becomes.'),
      base: above0('Base of the frequencies.'),
      originalContext: s.integer('YaRN: tokens of the context that the model was trained for.', 1),
      extFactor: s.number('YaRN: share of the high frequencies that stay.', { minimum: 0 }),
      attnFactor: above0("YaRN: factor of the attention's magnitude."),
      betaFast: above0('YaRN: rotations in the original context above which a frequency stays.'),
      betaSlow: above0('YaRN: rotations below which it is divided.'),
    },
  ),
  AdapterOption: s.object('An adapter beside a model.', [], {
    file: s.string(
      'A GGUF LoRA file, or a PEFT folder: `adapter_config.json` and `adapter_model.safetensors`.',
      { pattern: PATH, bounds: 'either this or `model`', expected: 'a path' },
    ),
    model: s.string(
      'A registered model or checkpoint, a name of `loadAdapter`, or a name of `models` that has adapters: theirs are meant.',
      { pattern: PATH, bounds: 'either this or `file`', expected: 'a name' },
    ),
    scale: s.number('What its output is multiplied by. Default 1.'),
  }),
  ModelOptions: s.object(
    "How one model is loaded and served. What is absent comes from the runtime's options.",
    ['path'],
    {
      path: text(
        'Path of a GGUF file, of a folder with an ONNX model or of one graph in it, or an `hf:` URI.',
      ),
      mmproj: s.stringOrNull(
        'The projector of a GGUF model that sees or hears: a path or an `hf:` URI. Default: the one whose name has `mmproj` in it, in the folder of the model or in the repository of its URI, if there is one; null: none.',
      ),
      imageTokens: s.object(
        'Tokens of one picture, where its model has pictures of any size. Default: as the projector says.',
        [],
        { min: s.integer('The least.', 1), max: s.integer('The most.', 1) },
      ),
      gpuLayers: {
        description:
          'Layers of a GGUF model on GPUs, counted from the output, which is one of them. `auto`, the default: as many as fit beside their cache and what a step computes with. A number that does not fit is an error with the figures.',
        if: { const: 'auto' },
        else: { ...s.integer('', 0), expected: '"auto" or an integer >= 0' },
        bounds: 'at least 0',
        tsType: 'number | "auto"',
      },
      devices: s.list(
        'Names of the GPUs that may have layers, see `stats().placement`. Default: all.',
        { type: 'string' },
        { minItems: 1 },
      ),
      mainGpu: text('The one GPU that has all of them. Not together with `devices`.'),
      tensorSplit: s.list(
        'Shares of these GPUs in the layers, for example `[3, 1]`. Default: by the memory that each has free.',
        { type: 'number', minimum: 0 },
        { minItems: 1, bounds: 'one of them above 0' },
      ),
      cacheOnGpu: s.boolean('Whether the KV cache of layers on a GPU lies there, too. Default true.'),
      fusedAttention: s.boolean(
        'Whether attention runs in one fused kernel, of a GGUF model. Default true. On CPUs without kernels of this library, many sequences of over 200 tokens in a non-unified KV cache (see `kvTokens`) decode faster without. A cache of 32 bits on a CPU never uses it: it rounds to 16 bits.',
      ),
      cacheBits: s.oneOf(
        'Bits of one number in the KV cache of a GGUF model. Default: 32 with F32 weights and no projector, else 16. With 32 the log-probabilities of a quantized model are those that the trainer computes, for twice the memory.',
        [16, 32],
      ),
      cacheType: s.ref(
        'CacheType',
        'How the numbers of the KV cache of a GGUF model are stored: `f32` and `f16` are 32 and 16 bits, `q8_0` takes 8.5 bits, `q4_0` 4.5. Not together with `cacheBits`. The quantized ones need `fusedAttention`. docs/choosing-a-model.md says what each does to log-probabilities.',
      ),
      slidingWindow: s.oneOf(
        'The KV cache of the layers of a GGUF model that see a sliding window only. `full`, the default: as long as that of the others. `window`: the window and one step. Each of `maxSequences` then has its own cells, no others hold cached prefixes, and `kvTokens` must not be less than `contextSize` for each. No effect on models without such layers.',
        ['full', 'window'],
      ),
      rollbackTokens: s.integer(
        'Drafted tokens that a step can take back, of a model with recurrent state whose engine can: each takes as much memory as the states of all `maxSequences`. Without them nothing is drafted. Default: up to 4, as many as 2 GiB hold for 12 sequences.',
        0,
        { maximum: MAX_DRAFTS },
      ),
      checkpointBytes: s.integer(
        "Bytes that checkpoints may take: copies of what cannot be cut of a prompt's cache, of models with recurrent state or `slidingWindow: 'window'`. From there a later prompt goes on that begins like it. 0 keeps none. Default: 256 MiB, or what 8 take if that is more.",
        0,
      ),
      rope: s.ref(
        'RopeOptions',
        'How a GGUF model counts positions: for longer contexts than its file says.',
      ),
      mmap: s.boolean(
        'Whether a GGUF file is mapped, so that processes share it and the system can drop its pages. Default: where the system can.',
      ),
      mlock: s.boolean('Whether the weights of a GGUF model are kept from being swapped out. Default false.'),
      kernels: s.oneOf(
        "Which kernels run the matmuls of a GGUF model's weights, and its attention. `auto`, the default: kernels of this library for weights in Q8_0, Q4_K, Q6_K, Q4_0, MXFP4, F16, BF16 and F32, where the processor has them, the model runs on the CPU alone and a private copy of its weights fits into memory. `plain`: the engine's own, which models in F32 that rank or have a projector always use. `batch` is a former name of `auto`, accepted in this release. `stats().kernels` says which.",
        ['auto', 'batch', 'plain'],
      ),
      products: s.oneOf('Former name of `kernels`, accepted in this release.', ['auto', 'batch', 'plain']),
      adapters: s.list(
        'Adapters of this name, mixed: each request of it is computed with them. Names that differ in nothing else share one model in memory. They stay loaded with it.',
        s.ref('AdapterOption'),
      ),
      pooling: s.oneOf(
        "How an ONNX model of embeddings makes a vector of the states of a text's tokens: their mean, the first (`cls`) or the last one. Default: what `1_Pooling/config.json` of its folder says; without either the model answers. GGUF files say it themselves.",
        ['mean', 'cls', 'last'],
      ),
      chatTemplate: text("Jinja source that replaces the file's own chat template."),
      toolFormat: text(
        'How the model writes tool calls, where looking at its template is not enough: a name of docs/tool-calls.md.',
      ),
      isolate: s.flag(
        false,
        'Whether it answers in a process of its own, as `isolate` of a runtime does for all. It is not trained then.',
      ),
      ...limits,
    },
    { expected: 'a path, an hf: URI or an object with a path' },
  ),
};
