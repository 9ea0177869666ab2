/** A GGUF file, perhaps a LoRA file, and tokens -> log-probability of each token but the first, as the engine serves them; and the experts that tokens took. */

import { NO_ADAPTER, type StepResult } from '../../src/engine/backend/index.ts';
import { NO_EXPERT } from '../../src/engine/native/index.ts';
import { loadGguf } from '../../src/models/formats/index.ts';
import { toRows } from './rows.ts';

/** Computed on one thread, on the engine's own kernels unless said, with plain attention and a cache in F32: a rounded cache would blur the comparison. */
export async function engineScores(
  path: string,
  tokens: ArrayLike<number>,
  adapter = '',
  kernels: 'auto' | 'plain' = 'plain',
): Promise<Float32Array> {
  const { scores } = await computed(path, tokens, adapter, kernels);
  return Float32Array.from(toRows(scores), ({ logprob }) => logprob);
}

/** (tokens, layers, used), as packed rows have them. */
export async function engineExperts(path: string, tokens: ArrayLike<number>): Promise<Int32Array> {
  const { experts } = await computed(path, tokens, '', 'auto');
  return Int32Array.from(experts!.ids, (id) => (id === NO_EXPERT ? -1 : id));
}

async function computed(
  path: string,
  tokens: ArrayLike<number>,
  adapter: string,
  kernels: 'auto' | 'plain',
): Promise<StepResult> {
  const count = tokens.length;
  const model = await loadGguf({ path, gpu: false, cacheType: 'f32', fusedAttention: false, kernels });
  const limits = {
    kvTokens: Math.ceil(count / 256) * 256,
    batchTokens: count,
    slotCount: 1,
    maxOutputs: count,
  };
  const backend = await model.createBackend({ ...limits, isKvUnified: true, threads: 1 });
  try {
    return await backend.step({
      adapter: adapter ? await backend.loadAdapter(adapter) : NO_ADAPTER,
      memoryEdits: new Int32Array(0),
      tokens: Int32Array.from(tokens),
      positions: Int32Array.from({ length: count }, (_, i) => i),
      sequences: new Int32Array(count),
      sampleRows: new Int32Array(0),
      samplers: [],
      rowEdits: [],
      scoreRows: Int32Array.from(
        Array.from({ length: count - 1 }, (_, row) => [row, tokens[row + 1]!, 0]).flat(),
      ),
      mayRunAhead: false,
      recordsExperts: model.experts !== null,
    });
  } finally {
    await backend.close();
    model.close();
  }
}
