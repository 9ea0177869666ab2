// Shared values <-> the handles that JavaScript holds, each with the tag of its kind.
#pragma once
#include <napi.h>

#include <memory>

#include "base/token-matcher.h"
#include "napi/arguments.h"

namespace onpolicy {

// Of a matcher: std::shared_ptr<TokenMatcher>. The one handle that goes from one addon to the other.
constexpr napi_type_tag kMatcherTag = {0x6f1ce85d20b7934au, kTokenMatcherVersion};

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

}  // namespace onpolicy
