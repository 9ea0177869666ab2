/** A model file and its options -> an estimate of its memory, then the model with its engine, templates and adapters. */
import fs from 'node:fs';
import { atField } from '../common/index.ts';
import { readHeader } from '../engine/gguf/index.ts';
import { Engine } from '../engine/index.ts';
import {
  defaultThreads,
  devices,
  engineBuild,
  type NativeProjector,
  openDecoder,
  usesGpu,
} from '../engine/native/index.ts';
import { errorAt, OnpolicyError } from '../errors.ts';
import type { CacheType, ModelOptions } from '../protocol/index.ts';
import { type ModelTemplate, readTemplate } from '../template/chat-format/index.ts';
import { AdapterFiles } from './adapter-files.ts';
import { type AdapterContext, Adapters } from './adapters.ts';
import type { CacheFacts } from './cache-layout.ts';
import { contextLimits, contextSizeOf } from './context-limits.ts';
import { requireDeterministic } from './deterministic.ts';
import {
  type EmbeddingModel,
  type EmbeddingPlan,
  estimateEmbedding,
  openEmbedding,
  openFormatEmbedding,
  planEmbedding,
  planFormatEmbedding,
} from './embedding-model.ts';
import {
  describeGguf,
  estimateMemory,
  type GgufModel,
  type GgufOptions,
  kvBytesPerToken,
  type LoadedModel,
  loadGguf,
  type ModelShape,
  scaledContext,
  stateFacts,
} from './formats/index.ts';
import { checkProjector, MediaModel } from './media/index.ts';
import type { MemoryNeed } from './memory-need.ts';
import { findProjector } from './model-files.ts';
import { formatOf, type ModelFormat } from './model-format.ts';
import { chosenDevices, describePlacement, onCpu, type Placement, place } from './placement.ts';
import { type CacheFiles, DiskCache } from './prompt-files/index.ts';
import type { RunningModel } from './running-model.ts';
import { kernelsOf, limitsOf, type ServingOptions } from './serving-options.ts';

/** Context of a load: the model's name, the memory for its adapters, and the files for its prompt caches. */
export type LoadOptions = Pick<AdapterContext, 'reserve'> & {
  readonly name: string;
  readonly signal: AbortSignal;
  readonly onProgress: (fraction: number) => void;
  /** Store of the caches of its prompts. */
  readonly files: CacheFiles;
};

/** A load that is decided but not begun. */
export type LoadPlan = {
  readonly file: string;
  readonly options: ModelOptions;
  /** Path of the projector. Null if the model has none. */
  readonly mmproj: string | null;
  /** Null for a GGUF file. */
  readonly format: ModelFormat | null;
  /** Null for a model of another format. */
  readonly shape: ModelShape | null;
  /** Null if the model answers. */
  readonly embedding: EmbeddingPlan | null;
  readonly placement: Placement;
  readonly need: MemoryNeed;
  readonly caches: readonly number[]; // (layers) bytes of the KV cache
};

/** Plans a load. Reads headers only, but downloads a projector that a URI names or that is in the repository of the model's URI. */
export async function planLoad(
  file: string,
  options: ModelOptions,
  serving: ServingOptions,
  signal: AbortSignal,
  mayDraft = false,
): Promise<LoadPlan> {
  const mmproj = await findProjector(file, options, serving, signal);
  if (mmproj !== null) await atField('model.mmproj', async () => checkProjector(await readHeader(mmproj)));
  // With a projector the cache is f16 by default, as in llama.cpp's server: models were not trained on media in another precision.
  const hasCache = options.cacheBits !== undefined || options.cacheType !== undefined;
  const given: ModelOptions = mmproj === null || hasCache ? options : { ...options, cacheType: 'f16' };
  const format = formatOf(file, serving.formats);
  if (format) {
    const { bytes: weights } = format.describe(file);
    const need = { weights, cache: 0, compute: 0, checkpoints: 0, host: weights, device: 0 };
    if (serving.deterministic)
      requireDeterministic({ shape: null, options, cacheType: 'f32', mmproj, gpuLayers: 0 });
    const embedding = planFormatEmbedding(format, file, given, serving);
    return {
      file,
      options: given,
      mmproj,
      format,
      shape: null,
      embedding,
      placement: onCpu(null, 0),
      need,
      caches: [],
    };
  }
  const shape = await describeGguf({ path: file, gpu: serving.gpu, mayDraft });
  const { fusedAttention = true, rope = null } = given;
  const cacheType = cacheTypeOf(given) ?? (shape.isF32 ? 'f32' : 'f16');
  requireCache(shape, cacheType);
  const facts: CacheFacts = {
    contextLength: scaledContext(shape.contextLength, rope),
    kvBytesPerToken: kvBytesPerToken(shape, cacheType),
    supportsNonUnifiedKv: shape.slidingWindow === 0 && !shape.isRecurrent,
    supportsUnifiedKv: true,
    prefersUnifiedKv: false, // known once it is loaded; a step's buffers then take some MiB more
    supportsSmallWindow: shape.slidingWindow > 0 && !shape.isRecurrent,
    isTiny: true,
    state: stateFacts(shape, cacheType),
  };
  const limits = contextLimits(given, serving, facts, shape.vocabSize);
  const embedding = planEmbedding(shape, given, serving);
  const estimate = embedding
    ? estimateEmbedding(shape, embedding, fusedAttention)
    : estimateMemory(shape, limits, { cacheType, fusedAttention });
  const weights = estimate.weights + (mmproj === null ? 0 : fs.statSync(mmproj).size);
  const { cache, caches, compute, checkpoints } = estimate;
  const placement = place(shape, estimate, {
    wanted: given.gpuLayers,
    cacheOnGpu: given.cacheOnGpu,
    devices: usesGpu(serving.gpu) ? chosenDevices(given, devices()) : [],
  });
  if (serving.deterministic && !embedding)
    requireDeterministic({ shape, options, cacheType, mmproj, gpuLayers: placement.gpuLayers });
  const isPrivate = given.mlock === true || given.mmap === false;
  const onHost = 1 - placement.gpuLayers / placement.layers;
  const host =
    placement.hostCacheBytes +
    checkpoints +
    (isPrivate ? onHost * weights : 0) +
    (placement.gpuLayers === 0 ? compute : 0);
  const need = { weights, cache, compute, checkpoints, host, device: placement.deviceBytes };
  return { file, options: given, mmproj, format, shape, embedding, placement, need, caches };
}

/**
 * Loads a model. If `gpuLayers` is `auto` and a GPU has less room than it reported, tries half as many layers again and again, down to
 * none.
 */
export async function loadModel(
  plan: LoadPlan,
  serving: ServingOptions,
  load: LoadOptions,
): Promise<RunningModel | EmbeddingModel> {
  const { options, shape, placement, need, caches } = plan;
  const { gpuLayers } = placement;
  try {
    const model = await loadPlaced(plan, serving, load);
    if (shape && usesGpu(serving.gpu)) serving.log?.('info', describePlacement(load.name, placement));
    return model;
  } catch (error) {
    const isFixed = typeof options.gpuLayers === 'number' || gpuLayers === 0;
    if (isFixed || !shape || !(error instanceof OnpolicyError) || error.code !== 'OUT_OF_MEMORY') throw error;
    const wanted = Math.floor(gpuLayers / 2);
    const fewer = place(
      shape,
      { ...need, caches },
      { wanted, cacheOnGpu: options.cacheOnGpu, devices: chosenDevices(options, devices()) },
    );
    serving.log?.(
      'warn',
      `${load.name}: ${gpuLayers} layers do not fit on GPUs, ${wanted} are tried: ${error.message}`,
    );
    return await loadModel({ ...plan, placement: fewer }, serving, load);
  }
}

/** Loads the weights and the tokenizer of a model. */
export async function loadWeights(
  { file, options, mmproj, format, shape, placement, need }: LoadPlan,
  { gpu, threads, speculation }: ServingOptions,
  { signal, onProgress }: { signal: AbortSignal; onProgress: (fraction: number) => void },
): Promise<LoadedModel> {
  if (shape === null)
    return await format!.load({ path: file, gpu, threads: options.threads ?? threads, signal });
  // Scores, and answers after a picture or sound, must equal those of llama.cpp's own programs if only the kernels would make them differ.
  const isReference = shape.isF32 && (shape.pooling === 'rank' || mmproj !== null);
  return await loadGguf(
    {
      path: file,
      gpu,
      signal,
      onProgress,
      reservedBytes: need.cache + need.compute,
      gpuLayers: placement.gpuLayers,
      devices: placement.devices,
      cacheOnGpu: placement.cacheOnGpu,
      ...(options.tensorSplit?.length === placement.devices.length
        ? { tensorSplit: options.tensorSplit }
        : {}), // a GPU without room gets no layers
      ...(options.fusedAttention === undefined ? {} : { fusedAttention: options.fusedAttention }),
      ...ggufOptions(options),
      kernels: isReference ? 'plain' : kernelsOf(options),
      loadHeads: speculation !== false,
    },
    shape,
  );
}

async function loadPlaced(
  plan: LoadPlan,
  serving: ServingOptions,
  { name, signal, onProgress, reserve, files }: LoadOptions,
): Promise<RunningModel | EmbeddingModel> {
  const { file, options, mmproj, format, shape, embedding, placement } = plan;
  const { threads, maxSequences: maxRunning, diskCacheBytes } = limitsOf(options, serving);
  if (embedding && shape === null) {
    return await openFormatEmbedding(
      format!,
      embedding,
      { path: file, name, placement },
      { gpu: serving.gpu, threads, signal },
    );
  }
  if (!embedding && shape?.isCausal === false)
    throw new OnpolicyError(
      'UNSUPPORTED',
      `${file}: tokens of this model see those after them, so it generates no text`,
      {
        param: 'model',
      },
    );
  const loaded = await loadWeights(plan, serving, { signal, onProgress });
  let projector: NativeProjector | null = null;
  try {
    if (embedding) {
      return await openEmbedding(loaded as GgufModel, embedding, { path: file, name, placement, threads });
    }
    projector =
      mmproj === null
        ? ((await loaded.openVision?.()) ?? null)
        : await openProjector(mmproj, loaded as GgufModel, options, serving);
    const { tokenizer } = loaded;
    const limits = contextLimits(options, serving, loaded, tokenizer.vocabSize);
    const backend = await loaded.createBackend({
      ...limits,
      ...(projector ? { wholeRows: projector.wholeRows } : {}),
    });
    const toTemplate = (source: string): ModelTemplate | null =>
      source === '' ? null : readTemplate(source, tokenizer, options.toolFormat);
    const { scheduling, prefixCache } = serving;
    const { checkpointBytes = 0 } = limits;
    const movesPieces = diskCacheBytes > 0;
    const engine = new Engine(backend, { maxRunning, scheduling, prefixCache, checkpointBytes, movesPieces });
    return {
      path: file,
      name,
      placement,
      loaded,
      tokenizer,
      engine,
      diskCache:
        diskCacheBytes === 0
          ? null
          : new DiskCache({
              files,
              engine,
              budget: diskCacheBytes,
              tokenBytes: loaded.kvBytesPerToken,
              model: name,
              paths: loaded.files,
              build: [await engineBuild(), loaded.kernels, `${placement.gpuLayers} on GPUs`],
            }),
      media: projector && new MediaModel(projector, serving.media),
      adapters: new Adapters({
        engine,
        files: new AdapterFiles(file),
        reserve,
      }),
      template: toTemplate(options.chatTemplate ?? loaded.chatTemplate),
      toolTemplate: options.chatTemplate === undefined ? toTemplate(loaded.toolTemplate) : null,
      contextSize: contextSizeOf(options, serving, loaded.contextLength),
      threads: limits.threads,
      defaults: loaded.defaults,
      fingerprint: loaded.fingerprint,
    };
  } catch (error) {
    projector?.close();
    await loaded.close();
    throw error;
  }
}

function ggufOptions(options: ModelOptions): Partial<GgufOptions> {
  const { rope, mmap, mlock } = options;
  const cacheType = cacheTypeOf(options);
  return Object.fromEntries(
    Object.entries({ cacheType, rope, mmap, mlock }).filter(([, value]) => value !== undefined),
  );
}

function cacheTypeOf({ cacheType, cacheBits }: ModelOptions): CacheType | undefined {
  return cacheType ?? (cacheBits === undefined ? undefined : cacheBits === 32 ? 'f32' : 'f16');
}

/** Throws if the blocks of a quantized cache do not fit into the heads of a model. */
function requireCache({ keySize, valueSize }: ModelShape, cacheType: CacheType): void {
  if (!cacheType.startsWith('q') || (keySize % 32 === 0 && valueSize % 32 === 0)) return;
  throw errorAt(
    'model.cacheType',
    'UNSUPPORTED',
    `${cacheType} needs heads of a multiple of 32 numbers, and this model has ${keySize} and ${valueSize}`,
  );
}

export async function unloadModel(model: RunningModel | EmbeddingModel): Promise<void> {
  if ('embeddings' in model) await model.embeddings.close();
  else {
    await model.diskCache?.close();
    await model.engine.close();
    await model.media?.close();
  }
  await model.loaded?.close();
}

async function openProjector(
  path: string,
  loaded: GgufModel,
  options: ModelOptions,
  { gpu, threads }: ServingOptions,
): Promise<NativeProjector> {
  await openDecoder();
  return await loaded.openProjector({
    path,
    threads: options.threads ?? threads ?? defaultThreads(loaded.isTiny),
    gpu,
    ...options.imageTokens,
  });
}
