/**
 * ONNX files -> a model and a backend. Loading a model: `download` or a folder, `folder` (its files), `providers`, a `compute-thread`. On
 * that thread `worker` opens the graph, `graph/` changes it in memory, `decoder` describes its inputs. A step: `model` (the backend),
 * `messages`, `runner`, `batches` (rows that run together), `cache`.
 */
import type { ModelFormat } from '../models/index.ts';
import { fetchModel, parseHubReference } from './download.ts';
import { describeOnnxEmbedding, loadOnnxEmbedding } from './embedding-model.ts';
import { isOnnxModel, readFolder } from './folder.ts';
import { loadOnnx, weightBytes } from './model.ts';

/** ONNX as a model format: folders with graphs, or a graph in a folder. */
export const onnxFormat: ModelFormat = {
  name: 'onnx',
  owns: isOnnxModel,
  fetch: (reference, hub, signal, onProgress) => {
    const found = parseHubReference(reference);
    return found && fetchModel(found, hub, signal, onProgress);
  },
  describe: (file) => {
    const folder = readFolder(file);
    return {
      bytes: weightBytes(folder),
      contextLength: folder.contextLength,
      chatTemplate: folder.chatTemplate,
    };
  },
  describeVectors: describeOnnxEmbedding,
  load: loadOnnx,
  loadVectors: loadOnnxEmbedding,
};
