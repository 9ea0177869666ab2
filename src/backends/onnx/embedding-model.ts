/** A folder with an ONNX graph of embeddings -> its tokenizer, and what computes vectors on a thread of its own. */
import { OnpolicyError } from '../../errors.ts';
import { defaultThreads, type NativeEmbedder } from '../../native/index.ts';
import type { Gpu } from '../../protocol/index.ts';
import type { Tokenizer } from '../../tokenizer/index.ts';
import { ComputeThread } from './compute-thread.ts';
import type { EmbeddingMethods } from './embedding-worker.ts';
import { readFolder } from './folder.ts';
import type { OnnxPooling } from './messages.ts';
import { isTinyFolder } from './model.ts';
import { chooseProviders } from './providers.ts';
import { createTokenizer } from './tokenizer.ts';

/** A loaded model of embeddings. Closing the embedder frees it. */
export type OnnxEmbeddingModel = { readonly tokenizer: Tokenizer; readonly embedder: NativeEmbedder };

/** How the states of a folder's model become a vector, and its longest text; null: it is none of embeddings. */
export function describeOnnxEmbedding(
  path: string,
  given: OnnxPooling | undefined,
): { readonly pooling: OnnxPooling; readonly contextLength: number } | null {
  const { pooling, contextLength } = readFolder(path);
  const chosen = given ?? pooling;
  return chosen && { pooling: chosen, contextLength };
}

/** Loads it. Fails as `loadOnnx` does. */
export async function loadOnnxEmbedding(options: {
  readonly path: string;
  readonly pooling: OnnxPooling;
  readonly gpu: Gpu;
  /** CPU threads; null: one per core, one for a tiny model. */
  readonly threads: number | null;
  readonly signal: AbortSignal;
}): Promise<OnnxEmbeddingModel> {
  const folder = readFolder(options.path);
  const providers = await chooseProviders(options.gpu);
  const thread = new ComputeThread<EmbeddingMethods>('embedding-worker');
  try {
    const { file, sizes, width } = folder;
    const threads = options.threads ?? defaultThreads(isTinyFolder(folder));
    const size = await thread.call(
      'open',
      { file, sizes, width, pooling: options.pooling },
      { threads, providers },
    );
    if (options.signal.aborted) throw new OnpolicyError('ABORTED', `loading ${options.path} was aborted`);
    const tokenizer = await createTokenizer(folder, folder.sizes.vocabSize);
    const embed = (tokens: Int32Array, lengths: Int32Array) => thread.call('embed', tokens, lengths);
    return { tokenizer, embedder: { size, embed, close: () => thread.close() } };
  } catch (error) {
    await thread.close();
    throw error;
  }
}
