/** A GGUF file and its options -> an estimate of its memory, its place on GPUs, and its load. */
import fs from 'node:fs';
import { defaultThreads, devices, usesGpu } from '../engine/native/index.ts';
import { errorAt, OnpolicyError } from '../errors.ts';
import type { CacheType, ModelOptions } from '../protocol/index.ts';
import type { CacheFacts } from './cache-layout.ts';
import { contextLimits } from './context-limits.ts';
import { EMBEDDER_LIMITS, embeddingModel, estimateEmbedding, planEmbedding } from './embedding-model.ts';
import {
  describeGguf,
  estimateMemory,
  type GgufModel,
  type GgufOptions,
  kvBytesPerToken,
  loadGguf,
  type ModelShape,
  OWN_CELLS,
  readHeaders,
  scaledContext,
  stateFacts,
  toShape,
  weightBytes,
} from './formats/index.ts';
import { fetchGguf } from './hub/index.ts';
import type { FormatFacts, FormatPlan, LoadControl, ModelFormat, PlanRequest } from './model-format.ts';
import { chosenDevices, place } from './placement.ts';
import { kernelsOf, limitsOf, type ServingOptions } from './serving-options.ts';

/** GGUF as a model format. It is the last format of a list: it takes every file that no other format owns. */
export const ggufFormat: ModelFormat = {
  name: 'gguf',
  hasProjectors: true,
  owns: () => true,
  fetch: fetchGguf,
  describe: readFacts,
  plan: async (request) => toFormatPlan(await planGguf(request)),
};

/** A decided load of a GGUF file. */
export type GgufPlan = PlanRequest &
  Pick<FormatPlan, 'placement' | 'need' | 'embedding'> & {
    readonly shape: ModelShape;
    readonly caches: readonly number[]; // (layers) bytes of the KV cache
  };

async function readFacts(file: string, options: ModelOptions, serving: ServingOptions): Promise<FormatFacts> {
  const parts = await readHeaders(file);
  const [header] = parts;
  const shape = toShape(parts);
  const tensors = parts.flatMap((part) => [...part.tensors.values()]);
  const bytesOf = new Map<string, number>();
  for (const { type, bytes } of tensors) bytesOf.set(type.name, (bytesOf.get(type.name) ?? 0) + bytes);
  const [main] = [...bytesOf].sort(([, a], [, b]) => b - a);
  return {
    format: 'gguf',
    bytes: parts.reduce((sum, part) => sum + fs.statSync(part.file).size, 0),
    architecture: header!.architecture,
    parameters: tensors.reduce((sum, { shape: sizes }) => sum + sizes.reduce((a, b) => a * b, 1), 0),
    weightType: main?.[0].toUpperCase() ?? '',
    chatTemplate: header!.text('tokenizer.chat_template') ?? '',
    metadata: header!.scalars,
    contextLength: scaledContext(shape.contextLength, options.rope ?? null),
    vectors: planEmbedding(shape, options, serving),
  };
}

/** Plans a load. With `mayDraft`, an EAGLE-3 file and an assistant are accepted. */
export async function planGguf(request: PlanRequest, mayDraft = false): Promise<GgufPlan> {
  const { file, options, mmproj, serving } = request;
  const shape = await describeGguf({ path: file, gpu: serving.gpu, mayDraft });
  const { fusedAttention = shape.fusesAttention, rope = null } = options;
  const cacheType = cacheTypeOf(options) ?? (shape.isF32 ? 'f32' : 'f16');
  requireCache(shape, cacheType);
  requireFusion(shape, cacheType, options);
  requireExperts(shape, options);
  const facts: CacheFacts = {
    contextLength: scaledContext(shape.contextLength, rope),
    kvBytesPerToken: kvBytesPerToken(shape, cacheType),
    supportsNonUnifiedKv: shape.slidingWindow === 0 && !shape.isRecurrent,
    supportsUnifiedKv: true,
    selectsBlocks: shape.selectsBlocks,
    prefersUnifiedKv: false, // known once it is loaded; a step's buffers then take some MiB more
    supportsSmallWindow: shape.slidingWindow > 0 && !shape.isRecurrent,
    isTiny: true,
    state: stateFacts(shape, cacheType),
  };
  const limits = contextLimits(options, serving, facts, shape.vocabSize);
  const embedding = planEmbedding(shape, options, serving);
  const estimate = embedding
    ? estimateEmbedding(shape, embedding, fusedAttention)
    : estimateMemory(shape, limits, { cacheType, fusedAttention });
  const weights = estimate.weights + (mmproj === null ? 0 : fs.statSync(mmproj).size);
  const { cache, caches, compute, checkpoints } = estimate;
  const placement = place(shape, estimate, {
    wanted: options.gpuLayers,
    cacheOnGpu: options.cacheOnGpu,
    cpuExpertLayers: cpuExpertLayers(options),
    devices: usesGpu(serving.gpu) ? chosenDevices(options, devices()) : [],
  });
  if (serving.deterministic && !embedding)
    requireDeterministic({
      shape,
      options,
      cacheType,
      mmproj,
      fusedAttention,
      gpuLayers: placement.gpuLayers,
    });
  const isPrivate = options.mlock === true || options.mmap === false;
  const onHost = placement.hostWeightBytes / weightBytes(shape);
  const host =
    placement.hostCacheBytes +
    checkpoints +
    (isPrivate ? onHost * weights : 0) +
    (placement.gpuLayers === 0 ? compute : 0);
  const need = { weights, cache, compute, checkpoints, host, device: placement.deviceBytes };
  return { ...request, shape, embedding, placement, need, caches };
}

function toFormatPlan(plan: GgufPlan): FormatPlan {
  const { placement, need, embedding } = plan;
  return {
    placement,
    need,
    embedding,
    load: async (control) => {
      requireCausal(plan);
      return await loadWeights(plan, control);
    },
    loadVectors: (name, control) => loadVectors(plan, name, control),
    withFewerLayers: () => {
      const fewer = halveLayers(plan);
      return fewer && toFormatPlan(fewer);
    },
  };
}

function halveLayers(plan: GgufPlan): GgufPlan | null {
  const { options, shape, need, caches, placement } = plan;
  if (typeof options.gpuLayers === 'number' || placement.gpuLayers === 0) return null;
  const wanted = Math.floor(placement.gpuLayers / 2);
  const given = {
    wanted,
    cacheOnGpu: options.cacheOnGpu,
    cpuExpertLayers: cpuExpertLayers(options),
    devices: chosenDevices(options, devices()),
  };
  return { ...plan, placement: place(shape, { ...need, caches }, given) };
}

/** Loads the weights and the tokenizer of a model. */
export async function loadWeights(
  { file, options, mmproj, serving, shape, placement, need }: GgufPlan,
  { signal, onProgress }: LoadControl,
): Promise<GgufModel> {
  const { gpu, speculation } = serving;
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
      cpuExpertLayers: cpuExpertLayers(options),
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

async function loadVectors(
  plan: GgufPlan,
  name: string,
  control: LoadControl,
): ReturnType<FormatPlan['loadVectors']> {
  const { file: path, options, serving, placement, embedding } = plan;
  const { contextSize, batchTokens, isLast, hasHead } = embedding!;
  const loaded = await loadWeights(plan, control);
  try {
    const { threads } = limitsOf(options, serving);
    const embedder = await loaded.createEmbedder({
      batchTokens,
      maxSequences: EMBEDDER_LIMITS.maxSequences,
      threads: threads ?? defaultThreads(loaded.isTiny),
      isLast,
      hasHead,
    });
    const { tokenizer, head } = loaded;
    return embeddingModel({ path, name, placement, loaded, tokenizer, head, contextSize }, embedder);
  } catch (error) {
    await loaded.close();
    throw error;
  }
}

/** Throws if the attention of a model that shall answer looks ahead. */
function requireCausal({ file, shape }: GgufPlan): void {
  if (shape.isCausal) return;
  const reason = `${file}: tokens of this model see those after them, so it generates no text`;
  throw new OnpolicyError('UNSUPPORTED', reason, { param: 'model' });
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

/** Returns the number of layers whose experts stay in main memory. It may be more than the model has. */
function cpuExpertLayers({ cpuExpertLayers: wanted = 0 }: ModelOptions): number {
  return wanted === 'all' ? Number.POSITIVE_INFINITY : wanted;
}

function requireExperts({ expertBytes }: ModelShape, options: ModelOptions): void {
  if (cpuExpertLayers(options) === 0 || expertBytes.some((bytes) => bytes > 0)) return;
  throw errorAt('model.cpuExpertLayers', 'UNSUPPORTED', 'expected 0, as this model has no experts');
}

/** Throws if attention shall be fused, and the engine cannot for this model. */
function requireFusion(shape: ModelShape, cacheType: CacheType, { fusedAttention }: ModelOptions): void {
  if (shape.fusesAttention) return;
  if (fusedAttention) throw errorAt('model.fusedAttention', 'UNSUPPORTED', UNFUSED_REASON);
  if (cacheType.startsWith('q'))
    throw errorAt('model.cacheType', 'UNSUPPORTED', `${cacheType} needs fusedAttention: ${UNFUSED_REASON}`);
}

const UNFUSED_REASON = 'the engine cannot fuse attention of this architecture';

type Facts = {
  readonly shape: Pick<ModelShape, 'slidingWindow'>;
  readonly options: ModelOptions;
  readonly cacheType: CacheType;
  readonly mmproj: string | null;
  readonly fusedAttention: boolean;
  readonly gpuLayers: number;
};

/** Fails with `UNSUPPORTED`. Properties that depend on single operations of the model are checked when its context is created. */
function requireDeterministic({ shape, options, cacheType, mmproj, fusedAttention, gpuLayers }: Facts): void {
  if (gpuLayers > 0) refuse('model.gpuLayers', '0', String(gpuLayers));
  if (mmproj !== null) refuse('model.mmproj', 'null', mmproj);
  if (kernelsOf(options) === 'plain') refuse('model.kernels', 'auto', 'plain');
  if (shape.slidingWindow > 0 && options.slidingWindow === 'window')
    refuse('model.slidingWindow', 'full', 'window');
  if (!fusedAttention) refuse('model.fusedAttention', 'true', 'false');
  if (!OWN_CELLS.includes(cacheType)) refuse('model.cacheType', OWN_CELLS.join(' or '), cacheType);
}

function refuse(param: string, expected: string, got: string): never {
  throw errorAt(param, 'UNSUPPORTED', `expected ${expected} with deterministic, got ${got}`);
}
