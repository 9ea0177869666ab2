// A model's GGUF file and LoRA files -> a GGUF file whose weights hold what the adapters add; and a GGUF file of other types.
#pragma once
#include <string>
#include <vector>

#include "base/status.h"

namespace onpolicy::training {

struct MergedAdapter {
  std::string file;
  float scale = 1;  // beside the file's own
};

// kSame: every tensor has the type that it had, unchanged ones byte for byte. kWide: every tensor that is not F32 becomes F16, or
// F32 with kWidest.
enum class MergedTypes { kSame, kWide, kWidest };

// Writes `to`, which must not be read before this returns. Fails with UNSUPPORTED for types that need a calibration, and for
// models in several files.
Status MergeModel(const std::string& model, const std::vector<MergedAdapter>& adapters, MergedTypes types, int threads,
                  const std::string& to);

// Writes the matrices of `model` in the mix of types that llama.cpp numbers `file_type`.
Status QuantizeModel(const std::string& model, int file_type, int threads, const std::string& to);

}  // namespace onpolicy::training
