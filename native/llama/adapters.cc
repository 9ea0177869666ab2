#include "llama/adapters.h"

#include "llama/error-log.h"
#include "llama/planned-graph.h"

namespace onpolicy {

void Adapters::Attach(llama_context* context, const llama_context_params& params, ThreadPool* pool, bool is_deterministic) {
  context_ = context;
  params_ = params;
  pool_ = pool;
  is_deterministic_ = is_deterministic;
}

Status Adapters::Load(const std::string& path, uint32_t* adapter) {
  ErrorLog log;
  llama_adapter_lora* loaded = log.Run([&] { return Api().llama_adapter_lora_init(model_.get(), path.c_str()); });
  if (!loaded) return Status::Fail("MODEL_INVALID", path + " is no adapter of this model: " + log.Text());
  if (is_deterministic_) {
    const PlannedGraph graph(model_, params_, *pool_, loaded);
    if (const Status status = graph.RequireInvariance("this adapter"); !status.ok()) {
      Api().llama_adapter_lora_free(loaded);
      return status;
    }
  }
  *adapter = ++last_;
  loaded_[*adapter] = loaded;
  return Status::Ok();
}

Status Adapters::Mix(const std::vector<uint32_t>& adapters, const std::vector<float>& scales, uint32_t* mix) {
  std::vector<std::pair<uint32_t, float>> parts;
  for (size_t i = 0; i < adapters.size(); ++i) {
    if (loaded_.count(adapters[i]) == 0) return Status::Fail("BACKEND_FAILED", "a mix names an adapter that is not loaded");
    parts.emplace_back(adapters[i], scales[i]);
  }
  *mix = ++last_;
  mixes_[*mix] = std::move(parts);
  PlanGraphs();
  return Status::Ok();
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

Status Adapters::Use(uint32_t adapter) {
  if (adapter == used_) return Status::Ok();
  std::vector<llama_adapter_lora*> chosen;
  std::vector<float> scales;
  const auto choose = [&](uint32_t number, float scale) {
    const auto found = loaded_.find(number);
    if (found == loaded_.end()) return false;
    chosen.push_back(found->second);
    scales.push_back(scale);
    return true;
  };
  bool is_known = true;
  const auto mix = mixes_.find(adapter);
  if (mix != mixes_.end())
    for (const auto& [number, scale] : mix->second) is_known = is_known && choose(number, scale);
  else if (adapter != kNoAdapter) is_known = choose(adapter, 1.0f);
  if (!is_known) return Status::Fail("BACKEND_FAILED", "a step names an adapter that is not loaded");
  if (Api().llama_set_adapters_lora(context_, chosen.data(), chosen.size(), scales.data()) != 0)
    return Status::Fail("BACKEND_FAILED", "the engine does not take the adapter");
  used_ = adapter;
  return Status::Ok();
}

}  // namespace onpolicy
