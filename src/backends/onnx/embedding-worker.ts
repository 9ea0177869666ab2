/** Requests -> replies: the thread that computes embeddings, one request at a time. */
import type { InferenceSession } from 'onnxruntime-node';
import { GraphEmbedder } from './embedder.ts';
import type { EmbeddingRequest, EmbeddingValue } from './messages.ts';
import { loadRuntime } from './packages.ts';
import { serve } from './serve.ts';
import { openSession } from './session.ts';

let opened: { readonly session: InferenceSession; readonly embedder: GraphEmbedder } | null = null;

async function handle(request: EmbeddingRequest): Promise<EmbeddingValue | undefined> {
  switch (request.kind) {
    case 'open': {
      const { Tensor } = await loadRuntime();
      const session = await openSession(request.file, request);
      const embedder = new GraphEmbedder(session, Tensor, request);
      opened = { session, embedder };
      return embedder.size;
    }
    case 'embed':
      return await opened!.embedder.embed(request.tokens, request.lengths);
    case 'close':
      await opened?.session.release();
      opened = null;
      return undefined;
  }
}

serve<EmbeddingRequest, EmbeddingValue>(handle);
