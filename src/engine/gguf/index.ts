/** GGUF files -> their headers, read and checked. */
export {
  BLOCKS,
  EXAONE4_LAYERS,
  GEMMA3N_CACHES,
  GLM_DSA_SPARSE_CONTEXT,
  HEADS_ALONE,
  HEADS_APART,
  HEADS_APART_LATER,
  INDEXED,
  INTERVALS,
  LOOPED,
  ONE_PART_EACH,
  POOLED,
  ROUTED,
  ROWS_BY_ROWS,
  SOFTMAX_HEADS,
  STATES_BESIDE,
  STATES_BY_HEADS,
  STATES_ONLY,
  STATES_UNGROUPED,
  TAKES_BACK_SINCE,
  UNFUSED,
  WINDOWS,
} from './architectures.ts';
export { ASSISTANT, ASSISTED } from './assistant.ts';
export { type EagleFacts, eagleFacts } from './eagle.ts';
export {
  GgufHeader,
  type GgufTensor,
  type GgufValue,
  shapesOf,
  showShape,
  type ValueType,
} from './header.ts';
export { checkMatrix, checkTensorTypes } from './matrix-types.ts';
export { MAX_HEADER_BYTES, parseHeader, readHeader } from './read-header.ts';
export { checkTextModel } from './text-model.ts';
export { tokenBytes } from './token-bytes.ts';
