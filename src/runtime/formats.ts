/** Formats of model files that a runtime reads, in the order in which they are asked. */
import { ggufFormat, type ModelFormat } from '../models/index.ts';
import { onnxFormat } from '../onnx/index.ts';

export const FORMATS: readonly ModelFormat[] = [onnxFormat, ggufFormat];
