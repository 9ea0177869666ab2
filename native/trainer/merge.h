// A model's GGUF file and LoRA files -> merged weights, as a GGUF file or as one tensor after the other.
#pragma once
#include <string>
#include <vector>

#include "base/status.h"

namespace onpolicy::training {

struct MergedAdapter {
  std::string file;
  float scale = 1;  // multiplied by the scale in the file
};

// kSame: every tensor keeps its type, and unchanged tensors are copied byte for byte. kWide: every tensor that is not F32 becomes F16, or
// F32 with kWidest.
enum class MergedTypes { kSame, kWide, kWidest };

// Entries that are added to the header, or replace those of the same key.
struct HeaderEntries {
  std::vector<std::string> text_keys, texts;
  std::vector<std::string> number_keys;
  std::vector<float> numbers;
};

// Writes `to`, which must not be read before this returns. Fails with UNSUPPORTED for types that need a calibration, and for
// models in several files.
void MergeModel(const std::string& model, const std::vector<MergedAdapter>& adapters, MergedTypes types,
                const HeaderEntries& entries, int threads, const std::string& to);

// A tensor without a header.
struct PlainTensor {
  std::string name;
  int64_t paired_heads = 0;  // number of heads whose rows are in pairs and are written in halves; 0: rows are unchanged
  float offset = 0;          // added to every number
};

// Adds the numbers of these tensors to the end of `to`, each whole, in `type`: "f32", "f16" or "bf16".
void AppendTensors(const std::string& model, const std::vector<MergedAdapter>& adapters,
                     const std::vector<PlainTensor>& tensors, const std::string& type, int threads,
                     const std::string& to);

// Writes the matrices of `model` in the mix of types that llama.cpp numbers `file_type`.
void QuantizeModel(const std::string& model, int file_type, int threads, const std::string& to);

}  // namespace onpolicy::training
