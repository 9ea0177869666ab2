// A model -> of what the engine's graph of it is made, and what it keeps: seen while tokens are computed in a small context.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "attention/hook.h"
#include "llama/model.h"
#include "llama/thread-pool.h"

namespace onpolicy {

// Of a prompt and of one token.
class PlannedGraph {
 public:
  // `params`: of the context that the graph is for. `adapter`: beside the weights, or null.
  PlannedGraph(const Model& model, llama_context_params params, ThreadPool& pool, llama_adapter_lora* adapter = nullptr);

  bool has_own_attention() const { return is_planned_ && check_.has_own_attention(); }
  // Throws UNSUPPORTED and a node's name if logits of `what` may depend on what is computed with them.
  void RequireInvariance(const std::string& what) const;

 private:
  attention::GraphCheck check_;
  bool is_planned_ = false;  // false: the engine cannot
};

// Whether the engine's graph keeps the inputs of these layers, which drafting files read.
bool KeepsLayers(const Model& model, llama_context_params params, ThreadPool& pool, const std::vector<uint32_t>& layers);

}  // namespace onpolicy
