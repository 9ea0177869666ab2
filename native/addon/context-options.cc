// The options of a context, as JavaScript gives them -> those of the engine.
#include "addon/unwrap.h"

namespace onpolicy {
namespace {

ggml_type ReadCacheType(Napi::Value value) {
  const std::string name = ReadText(value, "cacheType");
  if (name == "f32") return GGML_TYPE_F32;
  if (name == "f16") return GGML_TYPE_F16;
  if (name == "q8_0") return GGML_TYPE_Q8_0;
  if (name == "q4_0") return GGML_TYPE_Q4_0;
  RefuseField(value.Env(), "cacheType", "f32, f16, q8_0 or q4_0");
}

constexpr std::pair<const char*, float llama_context_params::*> kRopeNumbers[] = {
    {"base", &llama_context_params::rope_freq_base},         {"extFactor", &llama_context_params::yarn_ext_factor},
    {"attnFactor", &llama_context_params::yarn_attn_factor}, {"betaFast", &llama_context_params::yarn_beta_fast},
    {"betaSlow", &llama_context_params::yarn_beta_slow},
};

RopeOptions ReadRope(Napi::Value value) {
  const Fields given(value, "rope");
  RopeOptions rope;
  if (given.Has("type")) {
    const std::string type = given.Text("type");
    rope.type = type == "yarn"     ? LLAMA_ROPE_SCALING_TYPE_YARN
                : type == "linear" ? LLAMA_ROPE_SCALING_TYPE_LINEAR
                                   : LLAMA_ROPE_SCALING_TYPE_NONE;
  }
  for (const auto& [name, parameter] : kRopeNumbers)
    if (given.Has(name)) rope.numbers.emplace_back(parameter, static_cast<float>(given.Number(name)));
  // The factor by which the context becomes longer.
  if (given.Has("factor")) rope.numbers.emplace_back(&llama_context_params::rope_freq_scale, 1 / static_cast<float>(given.Number("factor")));
  if (given.Has("originalContext")) rope.original_context = given.UnsignedOr("originalContext", 0);
  return rope;
}

}  // namespace

ContextOptions ReadContextOptions(const Fields& given) {
  ContextOptions options;
  options.kv_tokens = given.UnsignedOr("kvTokens", options.kv_tokens);
  options.is_kv_unified = given.Flag("isKvUnified");
  options.batch_tokens = given.UnsignedOr("batchTokens", options.batch_tokens);
  options.whole_rows = given.UnsignedOr("wholeRows", options.whole_rows);
  options.max_sequences = given.UnsignedOr("maxSequences", options.max_sequences);
  options.max_outputs = given.UnsignedOr("maxOutputs", options.max_outputs);
  options.threads = static_cast<int32_t>(given.UnsignedOr("threads", 1));
  options.rollback_tokens = given.UnsignedOr("rollbackTokens", options.rollback_tokens);
  if (given.Has("cacheBytes")) options.cache_bytes = given.Number("cacheBytes");
  options.has_draft_head = given.Flag("hasDraftHead");
  options.fused_attention = given.Flag("fusedAttention");
  options.keeps_fusion = given.Flag("keepsFusion");
  options.cache_on_gpu = given.Flag("cacheOnGpu");
  options.is_window_cache_full = given.Flag("isWindowCacheFull");
  options.is_deterministic = given.Flag("isDeterministic");
  options.cache_type = ReadCacheType(given["cacheType"]);
  if (given.Has("rope")) options.rope = ReadRope(given["rope"]);
  return options;
}

}  // namespace onpolicy
