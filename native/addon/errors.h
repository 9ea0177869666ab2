// Status -> the Error that JavaScript sees, with a message, a `code`, and for a faulty specification `places` and `offset`. The addon
// throws errors in this form only.
#pragma once
#include <napi.h>

#include <string>

#include "base/status.h"

namespace onpolicy {

inline Napi::Error ToError(Napi::Env env, const Status& status) {
  Napi::Error error = Napi::Error::New(env, status.message);
  error.Set("code", Napi::String::New(env, status.code));
  if (!status.places.empty()) {
    Napi::Array places = Napi::Array::New(env, status.places.size());
    for (uint32_t i = 0; i < status.places.size(); i++) places.Set(i, status.places[i]);
    error.Set("places", places);
  }
  if (status.offset) error.Set("offset", Napi::Number::New(env, static_cast<double>(*status.offset)));
  return error;
}

// Throws a failed status of another part of this library.
inline void Require(Status status) {
  if (!status.ok()) throw Failure(std::move(status));
}

// Throws INVALID_REQUEST.
[[noreturn]] inline void Refuse(Napi::Env env, const std::string& message) {
  throw ToError(env, Status::Fail("INVALID_REQUEST", message));
}

inline void Check(Napi::Env env, bool condition, const char* message) {
  if (!condition) Refuse(env, message);
}

}  // namespace onpolicy
