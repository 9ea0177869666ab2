// A model -> whether the engine can give the inputs of its layers, which drafting files read.
#pragma once
#include <cstdint>
#include <vector>

#include "llama/model.h"
#include "llama/thread-pool.h"

namespace onpolicy {

// Whether the engine's graph keeps the inputs of these layers: a token is computed in a small context like `params` to see.
bool KeepsLayers(const Model& model, llama_context_params params, ThreadPool& pool, const std::vector<uint32_t>& layers);

}  // namespace onpolicy
