// A model -> properties of the engine's graph, found by computing tokens in a small context.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine-assumptions/attention/hook.h"
#include "engine/model.h"
#include "engine/thread-pool.h"

namespace onpolicy {

// The graphs of a prompt and of one token.
class PlannedGraph {
 public:
  // `params`: parameters of the context that the graph is for. `adapter`: an adapter of the weights, or null.
  PlannedGraph(const Model& model, llama_context_params params, ThreadPool& pool, llama_adapter_lora* adapter = nullptr);

  // Throws UNSUPPORTED if attention would read the cells of a pool in an order that depends on where they lie.
  void RequirePositions() const;

  bool has_own_attention() const { return is_planned_ && check_.has_own_attention(); }
  // Throws UNSUPPORTED, naming a node, if logits of `what` may depend on the other tokens of a batch.
  void RequireInvariance(const std::string& what) const;

 private:
  attention::GraphCheck check_;
  attention::NodeCounts counts_;
  bool is_planned_ = false;  // false: the engine failed
};

// Returns true if the engine's graph keeps the inputs of these layers, which draft models read.
bool KeepsLayers(const Model& model, llama_context_params params, ThreadPool& pool, const std::vector<uint32_t>& layers);

}  // namespace onpolicy
