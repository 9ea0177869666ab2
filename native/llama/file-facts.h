// A GGUF file -> what its header says, without its weights: metadata, and where its bytes are.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace onpolicy {

struct TensorFacts {
  std::string name;
  std::vector<double> shape;  // (4) the fastest dimension first
};

struct FileFacts {
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<std::pair<std::string, double>> numbers;  // flags are 0 and 1
  std::vector<std::pair<std::string, std::vector<double>>> lists;  // of numbers, as far as kLongestList
  std::vector<std::pair<std::string, double>> counts;              // elements of every array
  std::vector<double> block_bytes;  // (layers) of the weights of each layer
  double input_bytes = 0;           // of the token embeddings
  double other_bytes = 0;           // of all other weights
  bool is_f32 = true;               // every weight is float32
  std::vector<TensorFacts> tensors;
};

// Longer arrays are those of the vocabulary.
inline constexpr size_t kLongestList = 4096;

// Fails with MODEL_NOT_FOUND or MODEL_INVALID. Finds faults on which llama.cpp gives no clear error: no file, no GGUF, a
// damaged header, missing tensor data.
Status ReadFileFacts(const std::string& path, FileFacts* facts);

}  // namespace onpolicy
