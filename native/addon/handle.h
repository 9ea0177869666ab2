// Shared values <-> the handles that JavaScript holds, each with the tag of its kind.
#pragma once
#include <napi.h>

#include <memory>

#include "addon/arguments.h"
#include "base/text-tokenizer.h"
#include "base/token-matcher.h"

namespace onpolicy {

// Tags of the handles that go from one addon to the other: std::shared_ptr<TokenMatcher> and std::shared_ptr<const TextTokenizer>.
constexpr napi_type_tag kMatcherTag = {0x6f1ce85d20b7934au, kTokenMatcherVersion};
constexpr napi_type_tag kTokenizerTag = {0xc05b92e7a4386d1fu, kTextTokenizerVersion};

// `bytes`: approximate memory outside of JavaScript's heap that the handle holds. It is reported to V8, which would otherwise collect
// unused handles too late.
template <typename T>
Napi::Value WrapShared(Napi::Env env, const napi_type_tag& tag, std::shared_ptr<T> value, size_t bytes = 0) {
  using Handle = Napi::External<std::shared_ptr<T>>;
  const auto size = static_cast<int64_t>(bytes);
  Napi::MemoryManagement::AdjustExternalMemory(env, size);
  Handle handle = Handle::New(env, new std::shared_ptr<T>(std::move(value)), [size](Napi::Env env, std::shared_ptr<T>* held) {
    delete held;
    Napi::MemoryManagement::AdjustExternalMemory(env, -size);
  });
  handle.TypeTag(&tag);
  return handle;
}

// Returns the object of a value that is known to be such a handle.
template <typename T>
const std::shared_ptr<T>& HeldBy(Napi::Value value) {
  return *value.As<Napi::External<std::shared_ptr<T>>>().Data();
}

template <typename T>
std::shared_ptr<T> UnwrapShared(Napi::Value value, const napi_type_tag& tag, const char* field, const char* expected) {
  if (!value.IsExternal() || !value.As<Napi::External<std::shared_ptr<T>>>().CheckTypeTag(&tag))
    RefuseField(value.Env(), field, expected);
  return HeldBy<T>(value);
}

}  // namespace onpolicy
