// LoRA adapters of one context, and mixes of them, each identified by a number.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine-assumptions/error-log.h"
#include "engine/model.h"
#include "engine/planned-graph.h"
#include "engine/step-input.h"
#include "engine/thread-pool.h"

namespace onpolicy {

// Call its functions between steps only: the engine reads all adapters of the model when it plans a graph.
class Adapters {
 public:
  explicit Adapters(const Model& model) : model_(model) {}

  // Sets the context, and the parameters that it was made with. `is_deterministic`: Load throws for adapters whose matmuls may depend on
  // the batch.
  void Attach(llama_context* context, const llama_context_params& params, ThreadPool* pool, bool is_deterministic) {
    context_ = context;
    params_ = params;
    pool_ = pool;
    is_deterministic_ = is_deterministic;
  }

  uint32_t Load(const std::string& path) {
    ErrorLog log;
    std::unique_ptr<llama_adapter_lora, Freed<&Library::llama_adapter_lora_free>> loaded(
        log.Run([&] { return Api().llama_adapter_lora_init(model_.get(), path.c_str()); }));
    if (!loaded) throw Failure("MODEL_INVALID", path + " is not an adapter of this model: " + log.Text());
    if (is_deterministic_) PlannedGraph(model_, params_, *pool_, loaded.get()).RequireInvariance("this adapter");
    loaded_[++last_] = loaded.release();
    return last_;
  }

  // Combines several loaded adapters, each with a factor of its output. Free the mix before any of them.
  uint32_t Mix(const std::vector<uint32_t>& adapters, const std::vector<float>& scales) {
    std::vector<std::pair<uint32_t, float>> parts;
    for (size_t i = 0; i < adapters.size(); ++i) {
      if (loaded_.count(adapters[i]) == 0) throw Failure("BACKEND_FAILED", "a mix names an adapter that is not loaded");
      parts.emplace_back(adapters[i], scales[i]);
    }
    mixes_[++last_] = std::move(parts);
    PlanGraphs();
    return last_;
  }

  // Frees an adapter or a mix. Ignores unknown numbers.
  void Free(uint32_t adapter) {
    if (used_ == adapter) Use(kNoAdapter);
    mixes_.erase(adapter);
    const auto found = loaded_.find(adapter);
    if (found == loaded_.end()) return;
    Api().llama_adapter_lora_free(found->second);
    loaded_.erase(found);
  }

  // Frees all adapters. Call it after the context is freed.
  void FreeAll() {
    for (const auto& [number, adapter] : loaded_) Api().llama_adapter_lora_free(adapter);
    loaded_.clear();
  }

  // Returns true if steps use an adapter.
  bool is_used() const { return used_ != kNoAdapter; }

  // Sets the adapter, or mix, of the following steps.
  void Use(uint32_t adapter) {
    if (adapter == used_) return;
    std::vector<std::pair<uint32_t, float>> parts;
    if (const auto mix = mixes_.find(adapter); mix != mixes_.end()) parts = mix->second;
    else if (adapter != kNoAdapter) parts = {{adapter, 1.0f}};
    std::vector<llama_adapter_lora*> chosen;
    std::vector<float> scales;
    for (const auto& [number, scale] : parts) {
      const auto found = loaded_.find(number);
      if (found == loaded_.end()) throw Failure("BACKEND_FAILED", "a step names an adapter that is not loaded");
      chosen.push_back(found->second);
      scales.push_back(scale);
    }
    if (Api().llama_set_adapters_lora(context_, chosen.data(), chosen.size(), scales.data()) != 0)
      throw Failure("BACKEND_FAILED", "the engine does not take the adapter");
    used_ = adapter;
  }

 private:
  // Makes the engine plan its graphs for all adapters that are loaded now. A graph has room for the adapters that were loaded when it was
  // planned, and the engine ends the process if it is too small. Changing the kind of attention makes it plan again; nothing is computed in
  // between.
  void PlanGraphs() {
    Api().llama_set_causal_attn(context_, false);
    Api().llama_set_causal_attn(context_, true);
  }

  const Model& model_;
  llama_context* context_ = nullptr;
  llama_context_params params_{};
  ThreadPool* pool_ = nullptr;
  bool is_deterministic_ = false;
  std::map<uint32_t, llama_adapter_lora*> loaded_;                     // by number
  std::map<uint32_t, std::vector<std::pair<uint32_t, float>>> mixes_;  // by number: adapters and their scales
  uint32_t last_ = kNoAdapter;                                         // highest number assigned to an adapter or mix
  uint32_t used_ = kNoAdapter;                                         // adapter of the last step
};

}  // namespace onpolicy
