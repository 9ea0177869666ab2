#include "llama/kept-layers.h"

#include <exception>

#include "llama/asserts.h"
#include "llama/error-log.h"
#include "llama/library.h"

namespace onpolicy {

bool KeepsLayers(const Model& model, llama_context_params params, ThreadPool& pool, const std::vector<uint32_t>& layers) {
  const Library& api = Api();
  params.n_ctx = 256;
  params.n_batch = params.n_ubatch = params.n_seq_max = params.n_outputs_max = 1;
  params.n_rs_seq = 0;
  params.abort_callback = nullptr;
  ErrorLog log;
  llama_context* context = log.Run([&] { return api.llama_init_from_model(model.get(), params); });
  if (!context) return false;
  api.llama_attach_threadpool(context, pool.get(), pool.get());
  llama_token token = 0;
  llama_batch batch{};
  batch.n_tokens = 1;
  batch.token = &token;
  const CatchFatal catching;
  bool does = false;
  try {
    for (uint32_t layer : layers) api.set_embeddings_layer_inp(context, layer, true);
    does = api.llama_decode(context, batch) == 0;
  } catch (const std::exception&) {
  }
  api.llama_free(context);
  return does;
}

}  // namespace onpolicy
