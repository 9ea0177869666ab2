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
    "Size of the KV cache in tokens. Default: `contextSize` for every sequence, if that takes up to 4 GiB, else 32,768. If all fit and this library's attention does not run, each sequence has its own cells, which is faster. Otherwise all share one pool.",
    2,
  ),
  maxSequences: s.integer('Sequences that run at the same time. Further ones wait.', 1, { maximum: 256 }),
  maxWaiting: s.integer(
    'Requests that may wait for a model in addition to the running ones; further ones fail with `OVERLOADED` at once. Default: no limit.',
    0,
  ),
  maxBatchTokens: s.integer('Token budget: the most tokens of one step.', 1, { maximum: 65_536 }),
  diskCacheBytes: s.integer(
    'Maximum bytes of all prompt caches on disk, in `home`; old ones are deleted. A prompt that begins like one of an earlier process continues from its cache. 0 keeps none. See docs/choosing-a-model.md.',
    0,
  ),
  threads: s.integer(
    'Maximum number of CPU threads: fewer run while other programs or models use cores, see `stats().threads`. Default: one per core, without efficiency cores; one for a model of less than ten million parameters.',
    1,
    { maximum: 512 },
  ),
} satisfies Record<string, s.Schema>;

/** Pattern of a path: file systems accept anything but NUL. */
export const PATH = '^[^\\0]+$';

const above0 = (description: string): s.Schema => s.number(description, { exclusiveMinimum: 0 });
const text = (description: string): s.Schema => s.string(description);

export const modelOptionDefinitions: s.Definitions = {
  ServingLimits: s.object("Limits of one model's engine.", [], limits),
  CacheType: s.oneOf(
    'How a number of the KV cache is stored. The quantized ones have a scale of 16 bits for each 32 numbers.',
    ['f32', 'f16', 'q8_0', 'q4_0'],
  ),
  RopeOptions: s.object(
    'How positions turn into rotations, for contexts longer than a model was trained for. Absent options are as in its file.',
    [],
    {
      type: s.oneOf(
        '`linear` divides positions by `factor`, `yarn` only those of low frequencies. `none`: neither.',
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
  AdapterOption: s.object('An adapter of a model.', [], {
    file: s.string(
      'A GGUF LoRA file, or a PEFT folder: `adapter_config.json` and `adapter_model.safetensors`.',
      { pattern: PATH, bounds: 'either this or `model`', expected: 'a path' },
    ),
    model: s.string(
      'A registered model or checkpoint, a name of `adapters.load`, or a name of `models` with adapters: its adapters are used.',
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
        'The projector of a GGUF model with image or audio input: a path or an `hf:` URI. Default: the file with `mmproj` in its name in the folder of the model or in the repository of its URI, if there is one; null: none.',
      ),
      imageTokens: s.object(
        "Tokens of one image, for models that accept images of any size. Default: the projector's limits.",
        [],
        { min: s.integer('Minimum.', 1), max: s.integer('Maximum.', 1) },
      ),
      gpuLayers: {
        description:
          'Layers of a GGUF model on GPUs, counted from the output, which is one of them. `auto`, the default: as many as fit together with their cache and compute buffers. A number that does not fit is an error with the figures.',
        if: { const: 'auto' },
        else: { ...s.integer('', 0), expected: '"auto" or an integer >= 0' },
        bounds: 'at least 0',
        tsType: 'number | "auto"',
      },
      cpuExpertLayers: {
        description:
          'Layers of a GGUF model, from the first, whose experts stay in main memory, whatever else of these layers is on GPUs. `all`: those of every layer. Default 0. An error for models without experts; no effect without a GPU.',
        if: { const: 'all' },
        else: { ...s.integer('', 0), expected: '"all" or an integer >= 0' },
        bounds: 'at least 0',
        tsType: 'number | "all"',
      },
      devices: s.list(
        'Names of the GPUs that may have layers, see `stats().placement`. Default: all.',
        { type: 'string' },
        { minItems: 1 },
      ),
      mainGpu: text('The one GPU to use for all layers. Not together with `devices`.'),
      tensorSplit: s.list(
        'Shares of these GPUs in the layers, for example `[3, 1]`. Default: by their free memory.',
        { type: 'number', minimum: 0 },
        { minItems: 1, bounds: 'one of them above 0' },
      ),
      cacheOnGpu: s.boolean('Whether the KV cache of layers on a GPU is there, too. Default true.'),
      fusedAttention: s.boolean(
        'Whether attention of a GGUF model runs in one fused kernel. Default true, false for `plm`, which the engine cannot fuse. On CPUs without kernels of this library, many sequences of over 200 tokens in a non-unified KV cache (see `kvTokens`) decode faster without it. A 32-bit cache on a CPU never uses it, because it rounds to 16 bits.',
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
        "Size of the KV cache in a GGUF model's layers that see only a sliding window. `full`, the default: as in other layers. `window`: the window and one step. Each of `maxSequences` then has its own cells, no further slots hold cached prefixes, and `kvTokens` must be at least `contextSize` for each. No effect on models without such layers.",
        ['full', 'window'],
      ),
      rollbackTokens: s.integer(
        'Draft tokens that a step can undo, for models with recurrent state if the engine supports it. Each takes as much memory as the states of all `maxSequences`. With 0 nothing is drafted. Default: up to 4, as many as 2 GiB hold for 12 sequences.',
        0,
        { maximum: MAX_DRAFTS },
      ),
      checkpointBytes: s.integer(
        "Maximum bytes of checkpoints, with recurrent state or `slidingWindow: 'window'`: copies of the part of a prompt's cache that cannot be cut. A later prompt with the same beginning continues from one. 0 keeps none. Default: 256 MiB, or the size of 8 if that is more.",
        0,
      ),
      rope: s.ref(
        'RopeOptions',
        'Position scaling of a GGUF model, for longer contexts than its file specifies.',
      ),
      mmap: s.boolean(
        'Whether a GGUF file is memory-mapped, so that processes share it and the system can drop its pages. Default: if the system supports it.',
      ),
      mlock: s.boolean('Whether the weights of a GGUF model are kept from being swapped out. Default false.'),
      kernels: s.oneOf(
        "Which kernels run the matmuls of a GGUF model's weights, and its attention. `auto`, the default: this library's kernels for weights in Q8_0, Q4_K, Q6_K, Q4_0, MXFP4, F16, BF16 and F32, if the processor supports them, the model runs only on the CPU, and a private copy of its weights fits into memory. `plain`: the engine's own, which models in F32 that rank or have a projector always use. `batch` is a former name of `auto`, accepted in this release. `stats().kernels` says which run.",
        ['auto', 'batch', 'plain'],
      ),
      products: s.oneOf('Former name of `kernels`, accepted in this release.', ['auto', 'batch', 'plain']),
      adapters: s.list(
        'Adapters of this name, summed: every request to it uses them. Names that differ only in adapters share one model in memory. They stay loaded with it.',
        s.ref('AdapterOption'),
      ),
      pooling: s.oneOf(
        "How an ONNX embedding model turns the states of a text's tokens into a vector: their mean, the first (`cls`) or the last one. Default: as in `1_Pooling/config.json` of its folder; without either the model is a chat model. GGUF files specify it themselves.",
        ['mean', 'cls', 'last'],
      ),
      chatTemplate: text("Jinja source that replaces the file's own chat template."),
      toolFormat: text(
        'How the model writes tool calls, if its template does not show it: a name from docs/chat-formats.md#tool-calls-and-reasoning.',
      ),
      isolate: s.flag(
        false,
        'Whether this model runs in a separate process, as `isolate` of a runtime does for all models. Then it cannot be trained.',
      ),
      ...limits,
    },
    { expected: 'a path, an hf: URI or an object with a path' },
  ),
};
