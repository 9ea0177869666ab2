#include "llama/file-facts.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/file-path.h"
#include "llama/library.h"

namespace onpolicy {
namespace {

// Layers that a header may name: a damaged one must not make a list of any length.
constexpr size_t kMaxBlocks = 4096;

Status InvalidFile(const std::string& path, const std::string& reason) {
  return Status::Fail("MODEL_INVALID", path + " " + reason);
}

// The number behind `data`, of a GGUF type; false if it is none.
bool ToNumber(gguf_type type, const void* data, size_t at, double* number) {
  const auto read = [&]<class T>(T) {
    *number = static_cast<double>(static_cast<const T*>(data)[at]);
    return true;
  };
  switch (type) {
    case GGUF_TYPE_BOOL:
    case GGUF_TYPE_UINT8: return read(uint8_t{});
    case GGUF_TYPE_INT8: return read(int8_t{});
    case GGUF_TYPE_UINT16: return read(uint16_t{});
    case GGUF_TYPE_INT16: return read(int16_t{});
    case GGUF_TYPE_UINT32: return read(uint32_t{});
    case GGUF_TYPE_INT32: return read(int32_t{});
    case GGUF_TYPE_UINT64: return read(uint64_t{});
    case GGUF_TYPE_INT64: return read(int64_t{});
    case GGUF_TYPE_FLOAT32: return read(float{});
    case GGUF_TYPE_FLOAT64: return read(double{});
    default: return false;
  }
}

void ReadArray(const gguf_context* gguf, int64_t key, const std::string& name, FileFacts* facts) {
  const Library& api = Api();
  const size_t count = api.gguf_get_arr_n(gguf, key);
  facts->counts.emplace_back(name, static_cast<double>(count));
  const gguf_type type = api.gguf_get_arr_type(gguf, key);
  if (type == GGUF_TYPE_STRING || type == GGUF_TYPE_ARRAY || count > kLongestList) return;
  std::vector<double> list(count);
  for (size_t i = 0; i < count; ++i)
    if (!ToNumber(type, api.gguf_get_arr_data(gguf, key), i, &list[i])) return;
  facts->lists.emplace_back(name, std::move(list));
}

void ReadMetadata(const gguf_context* gguf, FileFacts* facts) {
  const Library& api = Api();
  for (int64_t key = 0; key < api.gguf_get_n_kv(gguf); ++key) {
    const std::string name = api.gguf_get_key(gguf, key);
    const gguf_type type = api.gguf_get_kv_type(gguf, key);
    double number = 0;
    if (type == GGUF_TYPE_ARRAY) ReadArray(gguf, key, name, facts);
    else if (type == GGUF_TYPE_STRING) facts->texts.emplace_back(name, api.gguf_get_val_str(gguf, key));
    else if (ToNumber(type, api.gguf_get_val_data(gguf, key), 0, &number)) facts->numbers.emplace_back(name, number);
  }
}

void AddTensor(const std::string& name, double bytes, FileFacts* facts) {
  if (name == "token_embd.weight") {
    facts->input_bytes += bytes;
    return;
  }
  const size_t block = name.rfind("blk.", 0) == 0 ? std::strtoul(name.c_str() + 4, nullptr, 10) : kMaxBlocks;
  if (block >= kMaxBlocks) {
    facts->other_bytes += bytes;
    return;
  }
  facts->block_bytes.resize(std::max(facts->block_bytes.size(), block + 1));
  facts->block_bytes[block] += bytes;
}

}  // namespace

Status ReadFileFacts(const std::string& path, FileFacts* facts) {
  const Library& api = Api();
  std::error_code error;
  const std::filesystem::path file = FilePath(path);
  if (!std::filesystem::exists(file, error)) return Status::Fail("MODEL_NOT_FOUND", "there is no file " + path);
  if (!std::filesystem::is_regular_file(file, error)) return InvalidFile(path, "is not a file");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return InvalidFile(path, "cannot be read: permission denied");
  char magic[4] = {};
  stream.read(magic, 4);
  if (stream.gcount() != 4 || std::string(magic, 4) != "GGUF") return InvalidFile(path, "is not a GGUF file");
  ggml_context* shapes = nullptr;
  gguf_init_params params{/*no_alloc=*/true, /*ctx=*/&shapes};
  gguf_context* gguf = api.gguf_init_from_file(path.c_str(), params);
  if (!gguf) return InvalidFile(path, "has a damaged or truncated GGUF header");
  uint64_t data_size = 0;
  const int64_t tensors = api.gguf_get_n_tensors(gguf);
  for (int64_t i = 0; i < tensors; ++i) {
    const uint64_t bytes = api.gguf_get_tensor_size(gguf, i);
    data_size = std::max<uint64_t>(data_size, api.gguf_get_tensor_offset(gguf, i) + bytes);
    if (api.gguf_get_tensor_type(gguf, i) != GGML_TYPE_F32) facts->is_f32 = false;
    AddTensor(api.gguf_get_tensor_name(gguf, i), static_cast<double>(bytes), facts);
  }
  for (ggml_tensor* tensor = api.ggml_get_first_tensor(shapes); tensor; tensor = api.ggml_get_next_tensor(shapes, tensor))
    facts->tensors.push_back({tensor->name, {std::begin(tensor->ne), std::end(tensor->ne)}});
  api.ggml_free(shapes);
  ReadMetadata(gguf, facts);
  const uint64_t needed = api.gguf_get_data_offset(gguf) + data_size;
  api.gguf_free(gguf);
  const uint64_t present = std::filesystem::file_size(file, error);
  if (present < needed)
    return InvalidFile(path, "is truncated: it needs " + std::to_string(needed) + " bytes and has " + std::to_string(present));
  if (tensors == 0) return InvalidFile(path, "holds no weights (a vocabulary-only file)");
  return Status::Ok();
}

}  // namespace onpolicy
