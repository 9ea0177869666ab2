// Handles of drafters, as JavaScript holds them.
#pragma once
#include <napi.h>

#include <memory>

#include "drafts/drafter.h"
#include "llama/draft-context.h"
#include "napi/arguments.h"

namespace onpolicy {

// A handle that JavaScript holds: a shared value with the tag of its kind.
template <typename T>
Napi::Value WrapShared(Napi::Env env, const napi_type_tag& tag, std::shared_ptr<T> value) {
  using Handle = Napi::External<std::shared_ptr<T>>;
  Handle handle = Handle::New(env, new std::shared_ptr<T>(std::move(value)),
                              [](Napi::Env, std::shared_ptr<T>* held) { delete held; });
  handle.TypeTag(&tag);
  return handle;
}

template <typename T>
std::shared_ptr<T> UnwrapShared(Napi::Value value, const napi_type_tag& tag, const char* field, const char* expected) {
  using Handle = Napi::External<std::shared_ptr<T>>;
  if (!value.IsExternal() || !value.As<Handle>().CheckTypeTag(&tag)) RefuseField(value.Env(), field, expected);
  return *value.As<Handle>().Data();
}

// Null for null. Throws when `value` is no handle of a drafter.
std::shared_ptr<Drafter> UnwrapDrafter(Napi::Value value);

// Throws when `value` is no handle of a draft model.
std::shared_ptr<DraftContext> UnwrapDraftModel(Napi::Value value);

// createDraftModel(model, { sampledTokens, longest, ...those of createContext }) -> Promise of a handle: `model` drafts for
// sequences of a model with `sampledTokens` token ids, as long as they have at most `longest` tokens.
Napi::Value CreateDraftModel(const Napi::CallbackInfo& info);

// closeDraftModel(handle) -> Promise<void>: frees its context.
Napi::Value CloseDraftModel(const Napi::CallbackInfo& info);

}  // namespace onpolicy
