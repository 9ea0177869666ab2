/** The optional packages that ONNX models need, loaded on first use. */
import { errorAt, messageOf, type OnpolicyError } from '../errors.ts';

/** Loads onnxruntime-node. Fails with `NATIVE_UNAVAILABLE` if it is not installed or does not load. */
export async function loadRuntime(): Promise<typeof import('onnxruntime-node')> {
  const loaded = await import('onnxruntime-node').catch((cause: unknown) => {
    throw missing('onnxruntime-node', cause);
  });
  return 'default' in loaded ? (loaded.default as typeof import('onnxruntime-node')) : loaded;
}

/** Loads @huggingface/transformers: its tokenizers and its settings. */
export async function loadTransformers(): Promise<typeof import('@huggingface/transformers')> {
  return await import('@huggingface/transformers').catch((cause: unknown) => {
    throw missing('@huggingface/transformers', cause);
  });
}

function missing(name: string, cause: unknown): OnpolicyError {
  const isAbsent = (cause as { code?: string }).code === 'ERR_MODULE_NOT_FOUND';
  const reason = isAbsent ? 'is not installed' : `does not load: ${messageOf(cause)}`;
  return errorAt(
    'model',
    'NATIVE_UNAVAILABLE',
    `ONNX models need the package ${name}, which ${reason}; npm install onnxruntime-node @huggingface/transformers`,
    cause,
  );
}
