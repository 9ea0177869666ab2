// JavaScript objects, handles and options -> the native ones behind them. Each throws when its value is another.
#pragma once
#include <napi.h>

#include <memory>
#include <vector>

#include "drafts/drafter.h"
#include "llama/context-options.h"
#include "llama/model.h"
#include "llama/step-input.h"
#include "napi/arguments.h"
#include "sampler/sampler.h"

namespace onpolicy {

// Throws NATIVE_UNAVAILABLE until the engine's libraries are open.
void RequireLibrary(Napi::Env env);

// The model behind a `Model`; throws CLOSED when it is closed.
std::shared_ptr<Model> RequireModel(Napi::Object object);

// How a context is made, as createContext takes it.
ContextOptions ReadContextOptions(const Fields& given);

// Of an object of the class `Sampler`. It lives as long as the pointer, even if JavaScript drops its object.
std::shared_ptr<Sampler> UnwrapSampler(Napi::Env env, Napi::Value value);

// Null for null.
std::shared_ptr<Drafter> UnwrapDrafter(Napi::Value value);

// [{ at, count, rows, first, positions, isNonCausal }], `rows` as `encode` of a projector gave it.
std::vector<MediaRows> ReadMediaRows(Napi::Value value);

}  // namespace onpolicy
