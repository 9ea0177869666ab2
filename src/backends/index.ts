/** A model file -> a backend, which computes steps: the contract of backends, and the two that fulfil it. */
export {
  type Backend,
  type BackendLimits,
  MEMORY_COPY,
  MEMORY_REMOVE,
  NO_ADAPTER,
  type RowEdit,
  type Step,
  type StepMedia,
  type StepResult,
} from './backend.ts';
export { GgufModel, loadGguf } from './gguf.ts';
export type { LoadedModel } from './model.ts';
export { fetchModel, isOnnxModel, loadOnnx, parseHubReference } from './onnx/index.ts';
