/** GGUF files -> their headers, read and checked. */
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
