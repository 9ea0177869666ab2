#include "llama/planned-graph.h"

#include "llama/error-log.h"

namespace onpolicy {

PlannedGraph::PlannedGraph(const Model& model, llama_context_params params, ThreadPool& pool, llama_adapter_lora* adapter) {
  const Library& api = Api();
  params.n_ctx = 256;
  params.n_batch = params.n_ubatch = params.n_seq_max = params.n_outputs_max = 1;
  params.n_rs_seq = 0;  // states to go back to need longer passes
  params.abort_callback = nullptr;
  ErrorLog log;
  llama_context* context = log.Run([&] { return api.llama_init_from_model(model.get(), params); });
  if (!context) return;
  api.llama_attach_threadpool(context, pool.get(), pool.get());
  float scale = 1;
  if (adapter) api.llama_set_adapters_lora(context, &adapter, 1, &scale);
  llama_token token = 0;
  llama_batch batch{};
  batch.n_tokens = 1;
  batch.token = &token;
  const attention::Scope scope(model.has_own_kernels());
  is_planned_ = api.llama_decode(context, batch) == 0;
  api.llama_free(context);
}

Status PlannedGraph::RequireInvariance(const std::string& what) const {
  const std::string problem = "deterministic: logits of " + what + " may depend on what is computed with them, in ";
  if (!check_.variant().empty()) return Status::Fail("UNSUPPORTED", problem + check_.variant());
  return is_planned_ ? Status::Ok() : Status::Fail("BACKEND_FAILED", "the engine computes no token with " + what);
}

}  // namespace onpolicy
