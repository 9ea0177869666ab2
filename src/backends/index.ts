/** A model file -> a backend, which computes steps: the contract of backends, and the two that fulfil it. */
export {
  type Backend,
  type BackendLimits,
  type DraftHead,
  type EagleFile,
  MEMORY_COPY,
  MEMORY_FORGET,
  MEMORY_REMOVE,
  MEMORY_RESTORE,
  NO_ADAPTER,
  PASS_TOKENS,
  type RowEdit,
  type Step,
  type StepResult,
} from './backend.ts';
export { type GgufModel, type GgufOptions, isGguf, loadGguf, scaledContext } from './gguf.ts';
export { describeGguf, readHeaders, readModel } from './gguf-headers.ts';
export type { LayerMemory } from './layer-memory.ts';
export {
  CELLS_ROUNDED_TO,
  estimateMemory,
  isF32,
  kvBytesPerToken,
  type MemoryEstimate,
  type ModelShape,
  type Pooling,
  stateFacts,
  toBase,
  toShape,
} from './memory.ts';
export type { ContextSettings, ExpertFacts, LoadedModel, ScoreHead } from './model.ts';
export {
  describeOnnx,
  describeOnnxEmbedding,
  fetchModel,
  isOnnxModel,
  loadOnnx,
  loadOnnxEmbedding,
  type OnnxPooling,
  onnxBytes,
  parseHubReference,
} from './onnx/index.ts';
export { OWN_CELLS } from './own-attention.ts';
