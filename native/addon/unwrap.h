// JavaScript objects, handles and options -> the native objects behind them. Each function throws if its value is of another kind.
#pragma once
#include <napi.h>

#include <memory>
#include <vector>

#include "addon/arguments.h"
#include "engine/context-options.h"
#include "engine/drafts/drafter.h"
#include "engine/model.h"
#include "engine/step-input.h"
#include "sampler/sampler.h"

namespace onpolicy {

// Throws NATIVE_UNAVAILABLE until the engine's libraries are open.
void RequireLibrary(Napi::Env env);

// Returns the model behind a `Model`. Throws CLOSED if it is closed.
std::shared_ptr<Model> RequireModel(Napi::Object object);

// Reads the options of createContext.
ContextOptions ReadContextOptions(const Fields& given);

// Returns the sampler of an object of the class `Sampler`. It lives as long as the pointer, even if JavaScript drops its object.
std::shared_ptr<Sampler> UnwrapSampler(Napi::Env env, Napi::Value value);

// Returns the drafter in a handle. Null for null.
std::shared_ptr<Drafter> UnwrapDrafter(Napi::Value value);

// Reads [{ at, count, rows, first, positions, isNonCausal }]. `rows` is the result of a projector's `encode`.
std::vector<MediaRows> ReadMediaRows(Napi::Value value);

}  // namespace onpolicy
