// JavaScript values -> numbers, texts and arrays; a value of another kind throws INVALID_REQUEST.
#pragma once
#include <napi.h>

#include <algorithm>
#include <string>
#include <vector>

namespace onpolicy {

[[noreturn]] inline void ThrowTypeError(Napi::Env env, const std::string& message) {
  Napi::Error error = Napi::Error::New(env, message);
  error.Set("code", "INVALID_REQUEST");
  throw error;
}

inline double NumberField(Napi::Object object, const char* name) {
  Napi::Value value = object.Get(name);
  if (!value.IsNumber()) ThrowTypeError(object.Env(), std::string(name) + ": expected a number");
  return value.As<Napi::Number>().DoubleValue();
}

inline std::string TextField(Napi::Object object, const char* name) {
  Napi::Value value = object.Get(name);
  if (!value.IsString()) ThrowTypeError(object.Env(), std::string(name) + ": expected a string");
  return value.As<Napi::String>().Utf8Value();
}

inline std::vector<std::string> TextsField(Napi::Object object, const char* name) {
  Napi::Value value = object.Get(name);
  if (!value.IsArray()) ThrowTypeError(object.Env(), std::string(name) + ": expected an array");
  const auto list = value.As<Napi::Array>();
  std::vector<std::string> texts;
  for (uint32_t i = 0; i < list.Length(); ++i) texts.push_back(list.Get(i).ToString().Utf8Value());
  return texts;
}

inline std::vector<int32_t> IntegersField(Napi::Object object, const char* name) {
  Napi::Value value = object.Get(name);
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_int32_array)
    ThrowTypeError(object.Env(), std::string(name) + ": expected an Int32Array");
  const auto array = value.As<Napi::Int32Array>();
  return {array.Data(), array.Data() + array.ElementLength()};
}

inline std::vector<float> Floats(Napi::Value value, const char* name) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_float32_array)
    ThrowTypeError(value.Env(), std::string(name) + ": expected a Float32Array");
  const auto array = value.As<Napi::Float32Array>();
  return {array.Data(), array.Data() + array.ElementLength()};
}

inline Napi::Float32Array ToArray(Napi::Env env, const std::vector<float>& values) {
  Napi::Float32Array array = Napi::Float32Array::New(env, values.size());
  std::copy(values.begin(), values.end(), array.Data());
  return array;
}

inline Napi::Object ObjectArgument(const Napi::CallbackInfo& info, size_t index) {
  if (!info[index].IsObject()) ThrowTypeError(info.Env(), "expected an object");
  return info[index].As<Napi::Object>();
}

}  // namespace onpolicy
