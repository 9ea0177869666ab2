#include "llama/adapters.h"

#include <memory>

#include "llama/error-log.h"
#include "llama/planned-graph.h"

namespace onpolicy {

void Adapters::Attach(llama_context* context, const llama_context_params& params, ThreadPool* pool, bool is_deterministic) {
  context_ = context;
  params_ = params;
  pool_ = pool;
  is_deterministic_ = is_deterministic;
}

uint32_t Adapters::Load(const std::string& path) {
  ErrorLog log;
  std::unique_ptr<llama_adapter_lora, void (*)(llama_adapter_lora*)> loaded(
      log.Run([&] { return Api().llama_adapter_lora_init(model_.get(), path.c_str()); }), Api().llama_adapter_lora_free);
  if (!loaded) throw Failure("MODEL_INVALID", path + " is not an adapter of this model: " + log.Text());
  if (is_deterministic_) PlannedGraph(model_, params_, *pool_, loaded.get()).RequireInvariance("this adapter");
  loaded_[++last_] = loaded.release();
  return last_;
}

uint32_t Adapters::Mix(const std::vector<uint32_t>& adapters, const std::vector<float>& scales) {
  std::vector<std::pair<uint32_t, float>> parts;
  for (size_t i = 0; i < adapters.size(); ++i) {
    if (loaded_.count(adapters[i]) == 0) throw Failure("BACKEND_FAILED", "a mix names an adapter that is not loaded");
    parts.emplace_back(adapters[i], scales[i]);
  }
  mixes_[++last_] = std::move(parts);
  PlanGraphs();
  return last_;
}

// A graph has room for the adapters that were loaded when it was planned, and the engine ends the process when it is too
// small. Another kind of attention makes it plan again; nothing is computed in between.
void Adapters::PlanGraphs() {
  Api().llama_set_causal_attn(context_, false);
  Api().llama_set_causal_attn(context_, true);
}

void Adapters::Free(uint32_t adapter) {
  if (used_ == adapter) Use(kNoAdapter);
  mixes_.erase(adapter);
  const auto found = loaded_.find(adapter);
  if (found == loaded_.end()) return;
  Api().llama_adapter_lora_free(found->second);
  loaded_.erase(found);
}

void Adapters::FreeAll() {
  for (const auto& [number, adapter] : loaded_) Api().llama_adapter_lora_free(adapter);
  loaded_.clear();
}

void Adapters::Use(uint32_t adapter) {
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

}  // namespace onpolicy
