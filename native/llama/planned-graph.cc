#include "llama/planned-graph.h"

#include "llama/error-log.h"

namespace onpolicy {

constexpr int32_t kPromptTokens = 2;  // recurrent layers of some models have another graph for several tokens than for one

PlannedGraph::PlannedGraph(const Model& model, llama_context_params params, ThreadPool& pool, llama_adapter_lora* adapter) {
  const Library& api = Api();
  params.n_ctx = 256;
  params.n_seq_max = params.n_outputs_max = 1;
  params.n_batch = params.n_ubatch = kPromptTokens + params.n_rs_seq;  // the engine keeps what it may take back in one pass
  params.abort_callback = nullptr;
  ErrorLog log;
  llama_context* context = log.Run([&] { return api.llama_init_from_model(model.get(), params); });
  if (!context) return;
  api.llama_attach_threadpool(context, pool.get(), pool.get());
  float scale = 1;
  if (adapter) api.llama_set_adapters_lora(context, &adapter, 1, &scale);
  llama_token tokens[kPromptTokens] = {};
  llama_batch batch{};
  batch.token = tokens;
  const attention::Scope scope(model.has_own_kernels());
  is_planned_ = true;
  for (const int32_t count : {kPromptTokens, 1}) {
    batch.n_tokens = count;
    is_planned_ = is_planned_ && api.llama_decode(context, batch) == 0;
  }
  api.llama_free(context);
}

void PlannedGraph::RequireInvariance(const std::string& what) const {
  if (!check_.variant().empty())
    throw Failure("UNSUPPORTED", "deterministic: logits of " + what + " may depend on what is computed with them, in " + check_.variant());
  if (!is_planned_) throw Failure("BACKEND_FAILED", "the engine computes no token with " + what);
}

}  // namespace onpolicy
