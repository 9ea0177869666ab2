/** A step of tokens -> sampled tokens: the contract of what computes, and the two kinds of models that fulfil it. */
export {
  type Backend,
  type BackendLimits,
  MEMORY_COPY,
  MEMORY_REMOVE,
  NO_ADAPTER,
  type RowEdit,
  type Step,
  type StepResult,
} from './backend.ts';
export { GgufModel, loadGguf } from './gguf.ts';
export type { LoadedModel } from './model.ts';
export { fetchModel, parseHubReference } from './onnx/download.ts';
export { isOnnxModel } from './onnx/folder.ts';
export { loadOnnx } from './onnx/model.ts';
