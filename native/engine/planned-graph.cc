#include "engine/planned-graph.h"

#include <exception>
#include <memory>

#include "engine-assumptions/error-log.h"

namespace onpolicy {
namespace {

constexpr int32_t kPromptTokens = 2;  // recurrent layers of some models have another graph for several tokens than for one

using SmallContext = std::unique_ptr<llama_context, Freed<&Library::llama_free>>;

// Creates a context with the options of `params` for `tokens` tokens of one sequence. Returns null if the engine fails.
SmallContext NewSmallContext(const Model& model, llama_context_params params, ThreadPool& pool, uint32_t tokens) {
  params.n_ctx = 256;
  params.n_seq_max = params.n_outputs_max = 1;
  params.n_batch = params.n_ubatch = tokens;
  params.abort_callback = nullptr;
  ErrorLog log;
  SmallContext context(log.Run([&] { return Api().llama_init_from_model(model.get(), params); }));
  if (context) Api().llama_attach_threadpool(context.get(), pool.get(), pool.get());
  return context;
}

bool Decode(const SmallContext& context, int32_t count) {
  llama_token tokens[kPromptTokens] = {};
  llama_batch batch{};
  batch.n_tokens = count;
  batch.token = tokens;
  return Api().llama_decode(context.get(), batch) == 0;
}

}  // namespace

PlannedGraph::PlannedGraph(const Model& model, llama_context_params params, ThreadPool& pool, llama_adapter_lora* adapter) {
  // The engine takes all tokens that it may take back in one pass.
  const SmallContext context = NewSmallContext(model, params, pool, kPromptTokens + params.n_rs_seq);
  if (!context) return;
  float scale = 1;
  if (adapter) Api().llama_set_adapters_lora(context.get(), &adapter, 1, &scale);
  attention::CellPositions positions;
  const attention::Scope scope(model.has_own_kernels(), &positions, &counts_);
  is_planned_ = Decode(context, kPromptTokens) && Decode(context, 1);
  if (counts_.own_attention > 0) attention::CheckPositions(counts_, positions);
}

void PlannedGraph::RequireInvariance(const std::string& what) const {
  if (!check_.variant().empty())
    throw Failure("UNSUPPORTED", "deterministic: logits of " + what + " may depend on what is computed with them, in " + check_.variant());
  if (!is_planned_) throw Failure("BACKEND_FAILED", "the engine computes no token with " + what);
}

void PlannedGraph::RequirePositions() const {
  if (counts_.ordered < counts_.own_attention)
    throw Failure("UNSUPPORTED", "deterministic: the positions of cells in a pool are unknown for this model; set kvUnified to false");
}

bool KeepsLayers(const Model& model, llama_context_params params, ThreadPool& pool, const std::vector<uint32_t>& layers) {
  params.n_rs_seq = 0;
  const SmallContext context = NewSmallContext(model, params, pool, 1);
  if (!context) return false;
  try {
    for (uint32_t layer : layers) Api().set_embeddings_layer_inp(context.get(), layer, true);
    return Decode(context, 1);
  } catch (const Failure&) {
    return false;
  }
}

}  // namespace onpolicy
