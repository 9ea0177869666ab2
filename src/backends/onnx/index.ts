/**
 * ONNX files -> a model and a backend. The way of a model: `download` or a folder, `folder` (its files), `providers`, a
 * `compute-thread`. Behind it `worker` opens the graph, `graph/` changes it in memory, `decoder` says how it is fed.
 * The way of a step: `model` (the backend), `messages`, `runner`, `batches` (rows that run together), `cache`.
 */
export { fetchModel, parseHubReference } from './download.ts';
export { describeOnnxEmbedding, loadOnnxEmbedding } from './embedding-model.ts';
export { isOnnxModel, readFolder as describeOnnx } from './folder.ts';
export type { OnnxPooling } from './messages.ts';
export { loadOnnx, onnxBytes } from './model.ts';
