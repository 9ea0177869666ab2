// A model -> of what the engine's graph of it is made, seen while a prompt and one token are computed in a small context.
#pragma once
#include <string>

#include "attention/hook.h"
#include "llama/model.h"
#include "llama/thread-pool.h"

namespace onpolicy {

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

}  // namespace onpolicy
