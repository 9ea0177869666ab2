#include "llama/planned-graph.h"

#include <exception>
#include <memory>

#include "llama/asserts.h"
#include "llama/error-log.h"

namespace onpolicy {
namespace {

constexpr int32_t kPromptTokens = 2;  // recurrent layers of some models have another graph for several tokens than for one

using SmallContext = std::unique_ptr<llama_context, void (*)(llama_context*)>;

// As that of `params`, for so many tokens of one sequence; null: the engine makes none.
SmallContext NewSmallContext(const Model& model, llama_context_params params, ThreadPool& pool, uint32_t tokens) {
  params.n_ctx = 256;
  params.n_seq_max = params.n_outputs_max = 1;
  params.n_batch = params.n_ubatch = tokens;
  params.abort_callback = nullptr;
  ErrorLog log;
  SmallContext context(log.Run([&] { return Api().llama_init_from_model(model.get(), params); }), Api().llama_free);
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
  // The engine keeps what it may take back in one pass.
  const SmallContext context = NewSmallContext(model, params, pool, kPromptTokens + params.n_rs_seq);
  if (!context) return;
  float scale = 1;
  if (adapter) Api().llama_set_adapters_lora(context.get(), &adapter, 1, &scale);
  const attention::Scope scope(model.has_own_kernels());
  is_planned_ = Decode(context, kPromptTokens) && Decode(context, 1);
}

void PlannedGraph::RequireInvariance(const std::string& what) const {
  if (!check_.variant().empty())
    throw Failure("UNSUPPORTED", "deterministic: logits of " + what + " may depend on what is computed with them, in " + check_.variant());
  if (!is_planned_) throw Failure("BACKEND_FAILED", "the engine computes no token with " + what);
}

bool KeepsLayers(const Model& model, llama_context_params params, ThreadPool& pool, const std::vector<uint32_t>& layers) {
  params.n_rs_seq = 0;
  const SmallContext context = NewSmallContext(model, params, pool, 1);
  if (!context) return false;
  const CatchFatal catching;
  try {
    for (uint32_t layer : layers) Api().set_embeddings_layer_inp(context.get(), layer, true);
    return Decode(context, 1);
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace onpolicy
