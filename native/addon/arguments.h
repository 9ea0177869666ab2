// JavaScript values -> checked C++ values; vectors -> typed arrays. Every fault throws INVALID_REQUEST and names the field.
#pragma once
#include <napi.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "addon/errors.h"

namespace onpolicy {

[[noreturn]] inline void RefuseField(Napi::Env env, const std::string& field, const std::string& expected) {
  Refuse(env, field + ": expected " + expected);
}

inline bool IsAbsent(const Napi::Value& value) { return value.IsEmpty() || value.IsUndefined() || value.IsNull(); }

// Reads a number in [least, most].
inline double ReadNumber(Napi::Value value, const std::string& field,
                         double least = -std::numeric_limits<double>::infinity(),
                         double most = std::numeric_limits<double>::infinity()) {
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : std::nan("");
  if (number >= least && number <= most) return number;
  RefuseField(value.Env(), field,
              std::isinf(least) ? "a number" : "a number in [" + std::to_string(least) + ", " + std::to_string(most) + "]");
}

template <typename Integer = int32_t>
Integer ReadInteger(Napi::Value value, const std::string& field, Integer least = 0,
                    Integer most = std::numeric_limits<Integer>::max()) {
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : std::nan("");
  if (number >= static_cast<double>(least) && number <= static_cast<double>(most) && number == std::floor(number))
    return static_cast<Integer>(number);
  RefuseField(value.Env(), field, "an integer in [" + std::to_string(least) + ", " + std::to_string(most) + "]");
}

inline bool ReadBoolean(Napi::Value value, const std::string& field) {
  if (!value.IsBoolean()) RefuseField(value.Env(), field, "a boolean");
  return value.As<Napi::Boolean>().Value();
}

inline std::string ReadText(Napi::Value value, const std::string& field) {
  if (!value.IsString()) RefuseField(value.Env(), field, "a string");
  return value.As<Napi::String>().Utf8Value();
}

inline std::vector<std::string> ReadTexts(Napi::Value value, const std::string& field) {
  if (!value.IsArray()) RefuseField(value.Env(), field, "an array of strings");
  const auto list = value.As<Napi::Array>();
  std::vector<std::string> texts;
  for (uint32_t i = 0; i < list.Length(); ++i) texts.push_back(ReadText(list.Get(i), field));
  return texts;
}

// Type and name of a JavaScript array of T.
struct ArrayKind {
  napi_typedarray_type type;
  const char* name;
};
template <typename T>
constexpr ArrayKind kArrayOf = {};
template <>
inline constexpr ArrayKind kArrayOf<uint8_t> = {napi_uint8_array, "a Uint8Array"};
template <>
inline constexpr ArrayKind kArrayOf<int32_t> = {napi_int32_array, "an Int32Array"};
template <>
inline constexpr ArrayKind kArrayOf<uint32_t> = {napi_uint32_array, "a Uint32Array"};
template <>
inline constexpr ArrayKind kArrayOf<float> = {napi_float32_array, "a Float32Array"};

// Returns `value` as a typed array. Throws if its elements are of another type.
template <typename T>
Napi::TypedArrayOf<T> ReadArray(Napi::Value value, const std::string& field) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != kArrayOf<T>.type)
    RefuseField(value.Env(), field, kArrayOf<T>.name);
  return value.As<Napi::TypedArrayOf<T>>();
}

template <typename T>
std::vector<T> ToVector(const Napi::TypedArrayOf<T>& array) {
  return {array.Data(), array.Data() + array.ElementLength()};
}

template <typename T>
std::vector<T> ReadVector(Napi::Value value, const std::string& field) {
  return ToVector(ReadArray<T>(value, field));
}

template <typename T>
Napi::TypedArrayOf<T> ToArray(Napi::Env env, const std::vector<T>& values) {
  auto array = Napi::TypedArrayOf<T>::New(env, values.size());
  std::copy(values.begin(), values.end(), array.Data());
  return array;
}

template <typename T>
constexpr bool kIsVector = false;
template <typename T>
constexpr bool kIsVector<std::vector<T>> = true;

// Converts a value. Vectors of numbers become typed arrays.
template <typename T>
Napi::Value ToValue(Napi::Env env, const T& value) {
  if constexpr (kIsVector<T>) return ToArray(env, value);
  else return Napi::Value::From(env, value);
}

// Sets fields, given as names and values in turn.
inline void SetFields(Napi::Object) {}
template <typename Value, typename... Others>
void SetFields(Napi::Object object, const char* name, const Value& value, const Others&... others) {
  object.Set(name, ToValue(object.Env(), value));
  SetFields(object, others...);
}

// Returns an object with these fields.
template <typename... Fields>
Napi::Object ObjectOf(Napi::Env env, const Fields&... fields) {
  Napi::Object object = Napi::Object::New(env);
  SetFields(object, fields...);
  return object;
}

// Returns a list with the result of `make` for each item.
template <typename Items, typename Make>
Napi::Array ListOf(Napi::Env env, const Items& items, Make make) {
  Napi::Array list = Napi::Array::New(env);
  for (const auto& item : items) list.Set(list.Length(), make(item));
  return list;
}

// Reads token ids. Throws if one is outside the vocabulary.
inline Napi::Int32Array ReadTokenIds(Napi::Value value, const std::string& field, int32_t vocab_size) {
  const auto ids = ReadArray<int32_t>(value, field);
  for (size_t i = 0; i < ids.ElementLength(); ++i)
    if (ids[i] < 0 || ids[i] >= vocab_size)
      RefuseField(value.Env(), field, "token ids in [0, " + std::to_string(vocab_size) + ")");
  return ids;
}

// Reads one number per token of the vocabulary.
inline Napi::Float32Array ReadVocabularyRow(Napi::Value value, const std::string& field, int32_t vocab_size) {
  const auto row = ReadArray<float>(value, field);
  if (row.ElementLength() != static_cast<size_t>(vocab_size))
    RefuseField(value.Env(), field, "one number per token, " + std::to_string(vocab_size));
  return row;
}

// Reads the 32-bit words of a token bitmask. Null if absent.
inline const uint32_t* ReadMask(Napi::Value value, const std::string& field, int32_t vocab_size) {
  if (IsAbsent(value)) return nullptr;
  const size_t words = (static_cast<size_t>(vocab_size) + 31) / 32;
  const auto type = value.IsTypedArray() ? value.As<Napi::TypedArray>().TypedArrayType() : napi_uint8_array;
  if (type != napi_uint32_array && type != napi_int32_array)
    RefuseField(value.Env(), field, "a Uint32Array or an Int32Array");
  if (value.As<Napi::TypedArray>().ElementLength() < words)
    RefuseField(value.Env(), field, std::to_string(words) + " words");
  if (type == napi_uint32_array) return value.As<Napi::Uint32Array>().Data();
  return reinterpret_cast<const uint32_t*>(value.As<Napi::Int32Array>().Data());
}

// The fields of an options object, each read under its own name.
class Fields {
 public:
  explicit Fields(Napi::Value value, const char* what = "options") : object_(RequireObject(value, what)) {}

  Napi::Object object() const { return object_; }
  Napi::Value operator[](const char* name) const { return object_.Get(name); }

  double Number(const char* name) const { return ReadNumber(object_.Get(name), name); }
  template <typename I = int32_t>
  I Integer(const char* name, I least = 0, I most = std::numeric_limits<I>::max()) const {
    return ReadInteger<I>(object_.Get(name), name, least, most);
  }
  // Returns `otherwise` if the field is undefined.
  uint32_t UnsignedOr(const char* name, uint32_t otherwise) const {
    const Napi::Value value = object_.Get(name);
    return value.IsUndefined() ? otherwise : ReadInteger<uint32_t>(value, name);
  }
  // Returns false if the field is undefined.
  bool Flag(const char* name) const { return object_.Get(name).ToBoolean(); }
  bool Has(const char* name) const { return !IsAbsent(object_.Get(name)); }
  std::string Text(const char* name) const { return ReadText(object_.Get(name), name); }
  std::vector<std::string> Texts(const char* name) const { return ReadTexts(object_.Get(name), name); }
  std::vector<int32_t> Integers(const char* name) const { return ReadVector<int32_t>(object_.Get(name), name); }
  std::vector<float> Floats(const char* name) const { return ReadVector<float>(object_.Get(name), name); }
  // Returns an empty list if the field is undefined.
  std::vector<float> FloatsOrNone(const char* name) const {
    return object_.Get(name).IsUndefined() ? std::vector<float>() : Floats(name);
  }
  std::vector<int32_t> IntegersOrNone(const char* name) const {
    return object_.Get(name).IsUndefined() ? std::vector<int32_t>() : Integers(name);
  }

  // Throws if the object has a field other than `known`.
  void RefuseOthers(const std::string& what, const std::vector<std::string_view>& known) const {
    const Napi::Array names = object_.GetPropertyNames();
    for (uint32_t i = 0; i < names.Length(); ++i) {
      const std::string name = names.Get(i).ToString().Utf8Value();
      if (std::find(known.begin(), known.end(), name) == known.end())
        Refuse(object_.Env(), what + ": unknown option " + name);
    }
  }

 private:
  static Napi::Object RequireObject(Napi::Value value, const char* what) {
    if (!value.IsObject()) RefuseField(value.Env(), what, "an object");
    return value.As<Napi::Object>();
  }

  Napi::Object object_;
};

}  // namespace onpolicy
