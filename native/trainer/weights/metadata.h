// The header of a GGUF file -> values of its architecture's keys, of any type.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "engine-assumptions/library.h"

namespace onpolicy::training {

constexpr double kLargestSize = 2147483648.0;

// Values by key without the architecture's name. Reads numbers of any integer type.
class Metadata {
 public:
  explicit Metadata(gguf_context* gguf) : gguf_(gguf) { prefix_ = Whole("general.architecture") + "."; }

  std::string Whole(const std::string& key) const {
    const int64_t id = Api().gguf_find_key(gguf_, key.c_str());
    return id >= 0 && Api().gguf_get_kv_type(gguf_, id) == GGUF_TYPE_STRING ? Api().gguf_get_val_str(gguf_, id)
                                                                            : "";
  }
  std::string Text(const std::string& key) const { return Whole(prefix_ + key); }

  // Returns NaN if the value is not a number.
  double Number(const std::string& key, double otherwise) const {
    const Library& api = Api();
    const int64_t id = api.gguf_find_key(gguf_, (prefix_ + key).c_str());
    if (id < 0) return otherwise;
    switch (api.gguf_get_kv_type(gguf_, id)) {
      case GGUF_TYPE_UINT16:
        return api.gguf_get_val_u16(gguf_, id);
      case GGUF_TYPE_UINT32:
        return api.gguf_get_val_u32(gguf_, id);
      case GGUF_TYPE_INT32:
        return api.gguf_get_val_i32(gguf_, id);
      case GGUF_TYPE_UINT64:
        return static_cast<double>(api.gguf_get_val_u64(gguf_, id));
      case GGUF_TYPE_INT64:
        return static_cast<double>(api.gguf_get_val_i64(gguf_, id));
      case GGUF_TYPE_FLOAT32:
        return api.gguf_get_val_f32(gguf_, id);
      case GGUF_TYPE_BOOL:
        return *static_cast<const int8_t*>(api.gguf_get_val_data(gguf_, id)) != 0 ? 1 : 0;
      default:
        return std::nan("");
    }
  }
  // Returns 0 if the value is not a number, or too large for the size of a tensor.
  int64_t Integer(const std::string& key, double otherwise) const {
    const double value = Number(key, otherwise);
    return std::abs(value) < kLargestSize ? static_cast<int64_t>(value) : 0;
  }
  // Returns a list of at least `count` numbers or booleans, or an empty list if the value is not one.
  std::vector<int64_t> List(const std::string& key, int64_t count) const {
    const Library& api = Api();
    const int64_t id = api.gguf_find_key(gguf_, (prefix_ + key).c_str());
    if (id < 0 || api.gguf_get_kv_type(gguf_, id) != GGUF_TYPE_ARRAY || static_cast<int64_t>(api.gguf_get_arr_n(gguf_, id)) < count)
      return {};
    const gguf_type type = api.gguf_get_arr_type(gguf_, id);
    std::vector<int64_t> list;
    if (type != GGUF_TYPE_BOOL && type != GGUF_TYPE_INT32 && type != GGUF_TYPE_UINT32) return list;
    const void* values = api.gguf_get_arr_data(gguf_, id);
    for (int64_t i = 0; i < count; ++i)
      list.push_back(type == GGUF_TYPE_BOOL ? static_cast<const int8_t*>(values)[i] : static_cast<const int32_t*>(values)[i]);
    return list;
  }
  float Float(const std::string& key, double otherwise) const {
    return static_cast<float>(Number(key, otherwise));
  }

 private:
  gguf_context* gguf_;
  std::string prefix_;
};

}  // namespace onpolicy::training
