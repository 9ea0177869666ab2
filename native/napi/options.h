// Reads and checks plain options objects and typed arrays from JavaScript. Every fault throws a TypeError or
// RangeError that names the field.
#pragma once
#include <napi.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>

namespace onpolicy {

[[noreturn]] inline void ThrowType(Napi::Env env, const std::string& field, const std::string& expected) {
  throw Napi::TypeError::New(env, field + ": expected " + expected);
}

[[noreturn]] inline void ThrowRange(Napi::Env env, const std::string& field, const std::string& expected) {
  throw Napi::RangeError::New(env, field + ": expected " + expected);
}

inline bool IsAbsent(const Napi::Value& value) {
  return value.IsEmpty() || value.IsUndefined() || value.IsNull();
}

// A finite number in [least, most].
inline double ReadNumber(Napi::Value value, const std::string& field, double least, double most) {
  if (!value.IsNumber()) ThrowType(value.Env(), field, "a number");
  const double number = value.As<Napi::Number>().DoubleValue();
  if (!(number >= least && number <= most))
    ThrowRange(value.Env(), field,
               "a number in [" + std::to_string(least) + ", " + std::to_string(most) + "]");
  return number;
}

inline int32_t ReadInteger(Napi::Value value, const std::string& field, int32_t least, int32_t most) {
  if (!value.IsNumber()) ThrowType(value.Env(), field, "an integer");
  const double number = value.As<Napi::Number>().DoubleValue();
  if (!(number >= least && number <= most) || number != std::floor(number))
    ThrowRange(value.Env(), field,
               "an integer in [" + std::to_string(least) + ", " + std::to_string(most) + "]");
  return static_cast<int32_t>(number);
}

inline bool ReadBoolean(Napi::Value value, const std::string& field) {
  if (!value.IsBoolean()) ThrowType(value.Env(), field, "a boolean");
  return value.As<Napi::Boolean>().Value();
}

// The typed array in `value`, of exactly the given kind.
template <class Array>
Array ReadArray(Napi::Value value, napi_typedarray_type type, const std::string& field,
                const std::string& expected) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != type)
    ThrowType(value.Env(), field, expected);
  return value.As<Array>();
}

inline Napi::Int32Array ReadInt32Array(Napi::Value value, const std::string& field) {
  return ReadArray<Napi::Int32Array>(value, napi_int32_array, field, "an Int32Array");
}

inline Napi::Float32Array ReadFloat32Array(Napi::Value value, const std::string& field) {
  return ReadArray<Napi::Float32Array>(value, napi_float32_array, field, "a Float32Array");
}

// Token ids inside the vocabulary.
inline Napi::Int32Array ReadTokenIds(Napi::Value value, const std::string& field, int32_t vocab_size) {
  const Napi::Int32Array ids = ReadInt32Array(value, field);
  for (size_t i = 0; i < ids.ElementLength(); ++i)
    if (ids[i] < 0 || ids[i] >= vocab_size)
      ThrowRange(value.Env(), field, "token ids in [0, " + std::to_string(vocab_size) + ")");
  return ids;
}

// The 32-bit words of a token bitmask, or null when absent.
inline const uint32_t* ReadMask(Napi::Value value, const std::string& field, int32_t vocab_size) {
  if (IsAbsent(value)) return nullptr;
  if (value.IsTypedArray()) {
    const Napi::TypedArray array = value.As<Napi::TypedArray>();
    const napi_typedarray_type type = array.TypedArrayType();
    if (type == napi_uint32_array || type == napi_int32_array) {
      const size_t words = (static_cast<size_t>(vocab_size) + 31) / 32;
      if (array.ElementLength() < words) ThrowRange(value.Env(), field, std::to_string(words) + " words");
      if (type == napi_uint32_array) return value.As<Napi::Uint32Array>().Data();
      return reinterpret_cast<const uint32_t*>(value.As<Napi::Int32Array>().Data());
    }
  }
  ThrowType(value.Env(), field, "a Uint32Array or an Int32Array");
}

// An optional field.
inline uint32_t ReadUint(const Napi::Object& object, const char* name, uint32_t fallback) {
  const Napi::Value value = object.Get(name);
  if (value.IsUndefined()) return fallback;
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : -1;
  if (!(number >= 0 && number <= 4294967295.0 && number == static_cast<uint32_t>(number)))
    throw Napi::RangeError::New(object.Env(), std::string(name) + ": expected an integer from 0 to 4294967295");
  return static_cast<uint32_t>(number);
}

inline std::string ReadString(const Napi::CallbackInfo& info, size_t index, const char* name) {
  if (info.Length() <= index || !info[index].IsString())
    throw Napi::TypeError::New(info.Env(), std::string(name) + ": expected a string");
  return info[index].As<Napi::String>().Utf8Value();
}

// Throws a TypeError for a field that is none of `known`.
inline void RejectUnknown(Napi::Object options, const std::string& what,
                          std::initializer_list<const char*> known) {
  const Napi::Array names = options.GetPropertyNames();
  for (uint32_t i = 0; i < names.Length(); ++i) {
    const std::string name = names.Get(i).ToString().Utf8Value();
    bool found = false;
    for (const char* candidate : known) found = found || name == candidate;
    if (!found) throw Napi::TypeError::New(options.Env(), what + ": unknown option " + name);
  }
}

// Runs `body` and turns a C++ exception into a JavaScript one: nothing else may cross into the host.
template <class Body>
auto Guard(Napi::Env env, Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const Napi::Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Napi::Error::New(env, error.what());
  }
}

}  // namespace onpolicy
