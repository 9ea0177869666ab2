/** A model file and its options -> an estimate of its memory, then the model with its engine, templates and adapters. */
import { atField } from '../common/index.ts';
import { readHeader } from '../engine/gguf/index.ts';
import { Engine } from '../engine/index.ts';
import { engineBuild, type NativeProjector, usesGpu } from '../engine/native/index.ts';
import { OnpolicyError } from '../errors.ts';
import type { ModelOptions } from '../protocol/index.ts';
import { type ModelTemplate, readTemplate } from '../template/chat-format/index.ts';
import { AdapterFiles } from './adapter-files.ts';
import { type AdapterContext, Adapters } from './adapters.ts';
import { contextLimits, contextSizeOf } from './context-limits.ts';
import type { EmbeddingModel } from './embedding-model.ts';
import { checkProjector, MediaModel } from './media/index.ts';
import { findProjector } from './model-files.ts';
import { type FormatOptions, type FormatPlan, formatOf, type LoadControl } from './model-format.ts';
import { describePlacement } from './placement.ts';
import { type CacheFiles, DiskCache } from './prompt-files/index.ts';
import type { RunningModel } from './running-model.ts';
import { limitsOf, type ServingOptions } from './serving-options.ts';

/** Context of a load: the model's name, the memory for its adapters, and the files for its prompt caches. */
export type LoadOptions = Pick<AdapterContext, 'reserve'> &
  LoadControl & {
    readonly name: string;
    /** Store of the caches of its prompts. */
    readonly files: CacheFiles;
  };

/** A load that is decided but not begun. */
export type LoadPlan = FormatPlan & {
  readonly file: string;
  readonly options: ModelOptions;
  /** Path of the projector. Null if the model has none. */
  readonly mmproj: string | null;
};

/** Plans a load. Reads headers only, but downloads a projector that a URI names or that is in the repository of the model's URI. */
export async function planLoad(
  file: string,
  options: ModelOptions,
  serving: FormatOptions,
  signal: AbortSignal,
): Promise<LoadPlan> {
  const mmproj = await findProjector(file, options, serving, signal);
  if (mmproj !== null) await atField('model.mmproj', async () => checkProjector(await readHeader(mmproj)));
  // With a projector the cache is f16 by default, as in llama.cpp's server: models were not trained on media in another precision.
  const hasCache = options.cacheBits !== undefined || options.cacheType !== undefined;
  const given: ModelOptions = mmproj === null || hasCache ? options : { ...options, cacheType: 'f16' };
  const request = { file, options: given, mmproj, serving };
  return { file, options: given, mmproj, ...(await formatOf(file, serving.formats).plan(request)) };
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
  const { placement } = plan;
  try {
    const model = plan.embedding
      ? await plan.loadVectors(load.name, load)
      : await loadAnswering(plan, serving, load);
    if (plan.withFewerLayers && usesGpu(serving.gpu))
      serving.log?.('info', describePlacement(load.name, placement));
    return model;
  } catch (error) {
    if (!(error instanceof OnpolicyError) || error.code !== 'OUT_OF_MEMORY') throw error;
    const fewer = plan.withFewerLayers?.();
    if (!fewer) throw error;
    serving.log?.(
      'warn',
      `${load.name}: ${placement.gpuLayers} layers do not fit on GPUs, ${fewer.placement.gpuLayers} are tried: ${error.message}`,
    );
    return await loadModel({ ...plan, ...fewer }, serving, load);
  }
}

async function loadAnswering(
  plan: LoadPlan,
  serving: ServingOptions,
  { name, signal, onProgress, reserve, files }: LoadOptions,
): Promise<RunningModel> {
  const { file, options, mmproj, placement } = plan;
  const { threads, maxSequences: maxRunning, diskCacheBytes } = limitsOf(options, serving);
  const loaded = await plan.load({ signal, onProgress });
  let projector: NativeProjector | null = null;
  try {
    projector = await loaded.openVision({
      projector: mmproj,
      gpu: serving.gpu,
      threads,
      ...options.imageTokens,
    });
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
              build: [
                await engineBuild(),
                loaded.kernels,
                `${placement.gpuLayers} on GPUs`,
                ...(placement.cpuExpertLayers > 0 ? [`${placement.cpuExpertLayers} without experts`] : []),
              ],
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

export async function unloadModel(model: RunningModel | EmbeddingModel): Promise<void> {
  if ('embeddings' in model) await model.embeddings.close();
  else {
    await model.diskCache?.close();
    await model.engine.close();
    await model.media?.close();
  }
  await model.loaded?.close();
}
