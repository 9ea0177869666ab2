// LoRA files and mixes of them beside the weights of one context, by numbers.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "llama/model.h"
#include "llama/step-input.h"
#include "llama/thread-pool.h"

namespace onpolicy {

// Calls are made between steps only: the engine looks at all adapters of the model when it lays out a graph.
class Adapters {
 public:
  explicit Adapters(const Model& model) : model_(model) {}

  // The context that they are for, and what it was made with. `is_deterministic`: adapters whose matmuls may depend on the batch are refused.
  void Attach(llama_context* context, const llama_context_params& params, ThreadPool* pool, bool is_deterministic);

  uint32_t Load(const std::string& path);
  // Several loaded adapters as one, each with a factor of its output. None of them may be freed before the mix is.
  uint32_t Mix(const std::vector<uint32_t>& adapters, const std::vector<float>& scales);
  // Frees an adapter or a mix. Ignores unknown numbers.
  void Free(uint32_t adapter);
  // When the context is gone.
  void FreeAll();
  // Steps from now on compute with it.
  void Use(uint32_t adapter);

 private:
  // Makes the engine plan its graphs for all adapters that are loaded now.
  void PlanGraphs();

  const Model& model_;
  llama_context* context_ = nullptr;
  llama_context_params params_{};
  ThreadPool* pool_ = nullptr;
  bool is_deterministic_ = false;
  std::map<uint32_t, llama_adapter_lora*> loaded_;                     // by number
  std::map<uint32_t, std::vector<std::pair<uint32_t, float>>> mixes_;  // by number: adapters and their scales
  uint32_t last_ = kNoAdapter;                                         // highest number given, of both
  uint32_t used_ = kNoAdapter;                                         // of the last step
};

}  // namespace onpolicy
