#include "engine/context-options.h"

#include <algorithm>

#include "engine-assumptions/library.h"

namespace onpolicy {

bool HasWideCells(const ContextOptions& options, const Model& model) {
  return options.cache_type == GGML_TYPE_F32 && !model.use_gpu();
}

llama_context_params ParamsOf(const ContextOptions& options, const Model& model) {
  llama_context_params params = Api().llama_context_default_params();
  params.n_ctx = options.kv_tokens;
  params.n_batch = std::max(options.batch_tokens, options.whole_rows);
  params.n_ubatch = std::max(std::min(options.batch_tokens, kPassTokens), options.whole_rows);
  params.n_seq_max = options.max_sequences;
  params.n_outputs_max = std::max(options.max_outputs, options.max_sequences);  // the engine requires one per sequence
  params.n_threads = options.threads;
  params.n_threads_batch = options.threads;
  params.kv_unified = options.is_kv_unified;
  if (!options.fused_attention) params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  else if (HasWideCells(options, model) || Api().ggml_is_quantized(options.cache_type)) params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  params.type_k = params.type_v = options.cache_type;
  params.n_rs_seq = std::min(options.rollback_tokens, std::max(params.n_ubatch, 2u) - 2);  // they must fit into one pass
  params.rope_scaling_type = options.rope.type;
  if (options.rope.original_context > 0) params.yarn_orig_ctx = options.rope.original_context;
  for (const auto& [parameter, value] : options.rope.numbers) params.*parameter = value;
  params.no_perf = true;
  params.swa_full = options.is_window_cache_full;
  params.offload_kqv = model.use_gpu() && options.cache_on_gpu;
  params.op_offload = model.use_gpu();
  return params;
}

}  // namespace onpolicy
