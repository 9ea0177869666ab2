#include "llama/context-options.h"

#include <algorithm>

#include "llama/library.h"

namespace onpolicy {
namespace {

void Apply(const RopeOptions& rope, llama_context_params* params) {
  params->rope_scaling_type = static_cast<llama_rope_scaling_type>(rope.type);
  if (rope.factor) params->rope_freq_scale = 1 / *rope.factor;
  if (rope.base) params->rope_freq_base = *rope.base;
  if (rope.original_context) params->yarn_orig_ctx = *rope.original_context;
  if (rope.ext_factor) params->yarn_ext_factor = *rope.ext_factor;
  if (rope.attn_factor) params->yarn_attn_factor = *rope.attn_factor;
  if (rope.beta_fast) params->yarn_beta_fast = *rope.beta_fast;
  if (rope.beta_slow) params->yarn_beta_slow = *rope.beta_slow;
}

}  // namespace

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
  Apply(options.rope, &params);
  params.no_perf = true;
  params.swa_full = options.is_window_cache_full;
  params.offload_kqv = model.use_gpu() && options.cache_on_gpu;
  params.op_offload = model.use_gpu();
  return params;
}

}  // namespace onpolicy
