// What computes embeddings on a model, as JavaScript holds it.
#pragma once
#include <napi.h>

namespace onpolicy {

// The class `Embedder`.
Napi::Function DefineEmbedder(Napi::Env env);

// createEmbedder(model, { batchTokens, maxSequences, threads, fusedAttention, isLast }) -> Promise<Embedder>
Napi::Value CreateEmbedder(const Napi::CallbackInfo& info);

}  // namespace onpolicy
