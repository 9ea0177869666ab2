/** The functions whose code, most of the library, is loaded at the first call: an import of the package costs little. */
import { requirePackage } from '../common/index.ts';
import type { InspectOptions, RuntimeOptions } from '../protocol/index.ts';
import type { ModelInspection } from './inspect-model.ts';
import type { Runtime } from './runtime.ts';

/**
 * Opens a runtime with its own models and limits.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options
 */
export async function createRuntime(options: RuntimeOptions = {}): Promise<Runtime> {
  requirePackage();
  const code = await import('./runtime.ts');
  return await code.createRuntime(options);
}

/**
 * Describes a GGUF file, and the memory that a runtime with these options would need for it. For an `hf:` URI that is not downloaded, only
 * the headers are read over the network.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options, `MODEL_NOT_FOUND`, `MODEL_INVALID`, `NETWORK_FAILED`, `UNSUPPORTED` for an
 * ONNX model
 */
export async function inspectModel(file: string, options: InspectOptions = {}): Promise<ModelInspection> {
  requirePackage();
  const code = await import('./runtime.ts');
  return await code.inspectModel(file, options);
}
