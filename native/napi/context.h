// A context as JavaScript holds it: the cache and the step thread on one model.
#pragma once
#include <napi.h>

#include "llama/context.h"
#include "napi/arguments.h"

namespace onpolicy {

// The class `Context`.
Napi::Function DefineContext(Napi::Env env);

// How a context is made, as createContext takes it.
ContextOptions ReadContextOptions(const Fields& given);

// createContext(model, { kvTokens, isKvUnified, batchTokens, maxSequences, maxOutputs, threads, fusedAttention, cacheBits })
// -> Promise<Context>
Napi::Value CreateContext(const Napi::CallbackInfo& info);

}  // namespace onpolicy
