#include "weights/traits.h"

namespace onpolicy::training {
namespace {

constexpr int kPairs = GGML_ROPE_TYPE_NORMAL;  // the two numbers that rotate together lie side by side

constexpr const char* kPostAttention = "post_attention_norm";

constexpr Traits kTraits[] = {
    {.name = "llama", .rope_mode = kPairs, .experts = Experts::kSome},  // Mistral and Mixtral, too
    {.name = "mistral3", .rope_mode = kPairs, .experts = Experts::kSome, .reads_yarn = true},
    {.name = "ernie4_5", .rope_mode = kPairs},
    {.name = "qwen2"},
    {.name = "seed_oss", .ffn_norm = kPostAttention},
    {.name = "qwen3", .has_head_norms = true},
    {.name = "qwen3moe", .experts = Experts::kAll, .has_head_norms = true},
    {.name = "hunyuan-dense", .has_head_norms = true, .are_head_norms_last = true},
    {.name = "gemma2",
     .has_post_norms = true,
     .is_gemma = true,
     .window_pattern = 2,
     .window = 4096,
     .attention_cap = 50,
     .logit_cap = 30,
     .layers_of_largest = 46},
    {.name = "gemma3",
     .has_head_norms = true,
     .has_post_norms = true,
     .is_gemma = true,
     .window_pattern = 6,
     .local_base = 10000,
     .is_local_unscaled = true,
     .layers_of_largest = 62},
    {.name = "gemma4",
     .has_head_norms = true,
     .has_post_norms = true,
     .is_gemma = true,
     .window_pattern = 6,
     .local_base = 10000,
     .is_local_unscaled = true,
     .logit_cap = 30,
     .has_own_inputs = true,
     .is_attention_unscaled = true,
     .are_values_normed = true},
    {.name = "smollm3", .rope_mode = kPairs, .unrotated_step = 4},
    {.name = "granite", .rope_mode = kPairs, .has_multipliers = true},
    {.name = "granitemoe", .rope_mode = kPairs, .experts = Experts::kAll, .has_multipliers = true},
    {.name = "phi3", .is_gate_fused = true},
    {.name = "glm4", .rope_mode = kPairs, .sections_mode = GGML_ROPE_TYPE_MROPE, .has_post_norms = true, .is_gate_fused = true, .has_fixed_outputs = true},
    {.name = "glm4moe",
     .sections_mode = GGML_ROPE_TYPE_MROPE,
     .experts = Experts::kAll,
     .has_shared_expert = true,
     .is_router_logistic = true,
     .has_fixed_outputs = true,
     .ffn_norm = kPostAttention},
    {.name = "olmo2",
     .has_head_norms = true,
     .are_head_norms_wide = true,
     .has_input_norms = false,
     .has_post_norms = true,
     .window_pattern = 4,
     .is_local_unscaled = true},
    {.name = "exaone4",
     .has_head_norms = true,
     .has_input_norms = false,
     .has_post_norms = true,
     .window_pattern = 4,
     .window = 4096,
     .window_layers = 64,
     .is_global_unrotated = true},
    {.name = "cohere2",
     .rope_mode = kPairs,
     .is_norm_centered = true,
     .is_parallel = true,
     .window_pattern = 4,
     .is_global_unrotated = true},
    {.name = "lfm2", .has_head_norms = true, .output_norm = "token_embd_norm"},
    {.name = "qwen35",
     .sections_mode = GGML_ROPE_TYPE_IMROPE,
     .has_head_norms = true,
     .delta_net_step = 4,
     .ffn_norm = kPostAttention},
    {.name = "qwen35moe",
     .sections_mode = GGML_ROPE_TYPE_IMROPE,
     .experts = Experts::kAll,
     .has_shared_expert = true,
     .has_head_norms = true,
     .delta_net_step = 4,
     .ffn_norm = kPostAttention},
    {.name = "gpt-oss",
     .experts = Experts::kAll,
     .window_pattern = 2,
     .ffn_norm = kPostAttention,
     .has_sinks = true,
     .activation = Activation::kClampedSilu},
};

}  // namespace

const Traits& TraitsOf(const std::string& architecture) {
  std::string known;
  for (const Traits& traits : kTraits) {
    if (architecture == traits.name) return traits;
    known += (known.empty() ? "" : ", ") + std::string(traits.name);
  }
  throw Failure("UNSUPPORTED", "training supports the architectures " + known + "; this model's is \"" + architecture + "\"");
}

}  // namespace onpolicy::training
