// A loaded model as JavaScript holds it.
#pragma once
#include <napi.h>

#include <memory>

#include "llama/model.h"

namespace onpolicy {

// Throws NATIVE_UNAVAILABLE until the engine's libraries are open.
void RequireLibrary(Napi::Env env);

// The model behind a `Model`; throws CLOSED when it is closed.
std::shared_ptr<Model> RequireModel(Napi::Object object);

}  // namespace onpolicy
