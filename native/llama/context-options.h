// What a context is asked for -> the engine's parameters.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "llama/model.h"

namespace onpolicy {

// How positions turn into rotations. What is not set is as the file says.
struct RopeOptions {
  llama_rope_scaling_type type = LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED;
  uint32_t original_context = 0;  // of YaRN; 0: as the file says
  std::vector<std::pair<float llama_context_params::*, float>> numbers;
};

// Tokens of one pass of the engine at most: longer batches take several.
constexpr uint32_t kPassTokens = 512;

struct ContextOptions {
  uint32_t kv_tokens = 4096;      // cells of the KV cache
  // true: all sequences share one pool of cells, and a copied prefix costs nothing. false: each sequence id has a stream of
  // kv_tokens / max_sequences cells, attention reads only those, and a copied prefix takes cells again.
  bool is_kv_unified = true;
  uint32_t batch_tokens = 512;    // tokens of one step at most
  uint32_t whole_rows = 0;        // rows of the largest non-causal chunk of a medium
  uint32_t max_sequences = 256;   // sequence ids are 0 to max_sequences - 1
  uint32_t max_outputs = 64;      // rows of logits in one step at most
  int32_t sampled_vocab = 0;      // ids that samplers know, where they are those of another model; 0: the model's own
  int32_t threads = 1;            // at most
  uint32_t rollback_tokens = 0;   // of a recurrent sequence, that can be taken back: the engine may do so for fewer or none
  bool has_draft_head = false;    // with the model's own head as a source of drafts, if it has one
  bool cache_on_gpu = true;       // of the layers on the GPU; false: in the processor's memory, where their attention runs then
  bool fused_attention = true;    // false: plain matmuls
  bool is_window_cache_full = true;  // false: layers with a sliding window have cells for the window and a step only
  bool is_deterministic = false;     // refused where a token's logits may have other bits in another batch
  ggml_type cache_type = GGML_TYPE_F16;  // of the numbers in the KV cache; quantized ones need fused attention
  RopeOptions rope;
};

// Whether cells are of 32 bits, on a CPU.
bool HasWideCells(const ContextOptions& options, const Model& model);

llama_context_params ParamsOf(const ContextOptions& options, const Model& model);

}  // namespace onpolicy
