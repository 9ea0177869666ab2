/** A graph's file, or the bytes of a changed graph -> a session of onnxruntime. */
import path from 'node:path';
import type { InferenceSession } from 'onnxruntime-node';
import { messageOf } from '../errors.ts';
import type { SessionSettings } from './messages.ts';
import { invalid } from './model-errors.ts';
import { loadRuntime } from './packages.ts';

/** Opens `file`, or `bytes` instead, with weights in the folder of `file`. Fails with `MODEL_INVALID`. */
export async function openSession(
  file: string,
  { threads, providers }: SessionSettings,
  bytes: Uint8Array | null = null,
): Promise<InferenceSession> {
  const { InferenceSession } = await loadRuntime();
  const options: InferenceSession.SessionOptions = {
    executionProviders: [...providers],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    graphOptimizationLevel: 'all',
    logSeverityLevel: 3,
    extra: {
      session: {
        // Between steps the sampler and JavaScript need the cores, so threads sleep instead of spinning.
        force_spinning_stop: '1',
        model_external_initializers_file_folder_path: path.dirname(file),
      },
    },
  };
  const loading = bytes ? InferenceSession.create(bytes, options) : InferenceSession.create(file, options);
  return await loading.catch((cause: unknown) => {
    throw invalid(`${file} cannot be loaded: ${messageOf(cause)}`, cause);
  });
}
