// A loaded model as JavaScript holds it.
#pragma once
#include <napi.h>

#include <memory>

#include "llama/model.h"

namespace onpolicy {

// Throws NATIVE_UNAVAILABLE until the engine's libraries are open.
void RequireLibrary(Napi::Env env);

// The class `Model`.
Napi::Function DefineModel(Napi::Env env);

// loadModel({ path, useGpu, gpuLayers, packs, mmap, mlock, onProgress, cancelled: Int32Array(1) }) -> Promise<Model>
// `cancelled[0]` set to 1 stops the load.
Napi::Value LoadModel(const Napi::CallbackInfo& info);

// modelTokens(model) -> Promise<{ bytes, offsets, ends, specials, mergesById }>: its vocabulary as grammars need it.
Napi::Value ModelTokens(const Napi::CallbackInfo& info);

// The model behind a `Model`; throws CLOSED when it is closed.
std::shared_ptr<Model> RequireModel(Napi::Object object);

}  // namespace onpolicy
