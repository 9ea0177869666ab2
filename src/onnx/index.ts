/**
 * ONNX files -> a model and a backend. Loading a model: `download` or a folder, `folder` (its files), `providers`, a `compute-thread`. On
 * that thread `worker` opens the graph, `graph/` changes it in memory, `decoder` describes its inputs. A step: `model` (the backend),
 * `messages`, `runner`, `batches` (rows that run together), `cache`.
 */
import { errorAt } from '../errors.ts';
import {
  type EmbeddingPlan,
  embeddingModel,
  type FormatPlan,
  limitsOf,
  type ModelFormat,
  onCpu,
  type PlanRequest,
  planWholeTexts,
  type VectorPooling,
} from '../models/index.ts';
import type { ModelOptions } from '../protocol/index.ts';
import { fetchModel, parseHubReference } from './download.ts';
import { loadOnnxEmbedding } from './embedding-model.ts';
import { isOnnxModel, type ModelFolder, readFolder } from './folder.ts';
import { loadOnnx, weightBytes } from './model.ts';

/** ONNX as a model format: folders with graphs, or a graph in a folder. */
export const onnxFormat: ModelFormat = {
  name: 'onnx',
  hasProjectors: false,
  owns: isOnnxModel,
  fetch: (reference, { hub, signal, onProgress }) => {
    const found = parseHubReference(reference);
    return found && fetchModel(found, hub, signal, onProgress);
  },
  describe: async (file, options, serving) => {
    const folder = readFolder(file);
    return {
      format: 'onnx',
      bytes: weightBytes(folder),
      architecture: '',
      parameters: null,
      weightType: '',
      chatTemplate: folder.chatTemplate,
      metadata: {},
      contextLength: folder.contextLength,
      vectors: planVectors(folder, options, serving),
    };
  },
  plan,
};

async function plan({ file: path, options, serving }: PlanRequest): Promise<FormatPlan> {
  const folder = readFolder(path);
  const weights = weightBytes(folder);
  if (serving.deterministic)
    throw errorAt('model', 'UNSUPPORTED', 'expected a GGUF file with deterministic, got an ONNX model');
  const embedding = planVectors(folder, options, serving);
  const placement = onCpu(null, 0);
  const { gpu } = serving;
  const { threads } = limitsOf(options, serving);
  return {
    placement,
    need: { weights, cache: 0, compute: 0, checkpoints: 0, host: weights, device: 0 },
    embedding,
    load: ({ signal }) => loadOnnx({ path, gpu, threads, signal }),
    loadVectors: async (name, { signal }) => {
      const pooling = poolingOf(folder, options)!;
      const { tokenizer, embedder } = await loadOnnxEmbedding({ path, gpu, threads, signal, pooling });
      const { contextSize } = embedding!;
      return embeddingModel(
        { path, name, placement, loaded: null, tokenizer, head: null, contextSize },
        embedder,
      );
    },
  };
}

/** Returns null if neither the folder nor the options say how states become a vector. */
function planVectors(
  folder: ModelFolder,
  options: ModelOptions,
  serving: PlanRequest['serving'],
): EmbeddingPlan | null {
  const pooling = poolingOf(folder, options);
  return pooling && planWholeTexts({ pooling, contextLength: folder.contextLength }, options, serving);
}

function poolingOf(folder: ModelFolder, { pooling }: ModelOptions): VectorPooling | null {
  return pooling ?? folder.pooling;
}
