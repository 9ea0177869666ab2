/** A model file -> a loaded model: its facts, the memory that it needs, and a backend that computes its steps. */
export { type GgufModel, type GgufOptions, isGguf, loadGguf, scaledContext } from './gguf.ts';
export { describeGguf, readHeaders, readModel } from './gguf-headers.ts';
export type { LayerMemory } from './layer-memory.ts';
export {
  type AssistantFacts,
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
  weightBytes,
} from './memory.ts';
export type { ExpertFacts, LoadedModel, ScoreHead } from './model.ts';
export { OWN_CELLS } from './own-attention.ts';
