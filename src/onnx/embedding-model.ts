/** A folder with an ONNX graph of embeddings -> its tokenizer, and an embedder on a separate thread. */

import { defaultThreads, type NativeEmbedder } from '../engine/native/index.ts';
import type { Tokenizer } from '../engine/tokenizer/index.ts';
import { OnpolicyError } from '../errors.ts';
import type { VectorPooling } from '../models/index.ts';
import { ComputeThread } from './compute-thread.ts';
import type { EmbeddingMethods } from './embedding-worker.ts';
import { readFolder } from './folder.ts';
import { isTinyFolder, type OnnxOptions } from './model.ts';
import { chooseProviders } from './providers.ts';
import { createTokenizer } from './tokenizer.ts';

/** A loaded model of embeddings. Closing the embedder frees it. */
export type OnnxEmbeddingModel = { readonly tokenizer: Tokenizer; readonly embedder: NativeEmbedder };

/** Loads the model. Fails as `loadOnnx` does. */
export async function loadOnnxEmbedding(
  options: OnnxOptions & { readonly pooling: VectorPooling },
): Promise<OnnxEmbeddingModel> {
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
    if (options.signal?.aborted) throw new OnpolicyError('ABORTED', `loading ${options.path} was aborted`);
    const tokenizer = await createTokenizer(folder, folder.sizes.vocabSize);
    const embed = (tokens: Int32Array, lengths: Int32Array) => thread.call('embed', tokens, lengths);
    return { tokenizer, embedder: { size, embed, close: () => thread.close() } };
  } catch (error) {
    await thread.close();
    throw error;
  }
}
