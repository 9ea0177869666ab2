// Options of a context -> the engine's parameters.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/model.h"

namespace onpolicy {

// Conversion of positions to rotations. Fields that are not set have the value of the model's file.
struct RopeOptions {
  llama_rope_scaling_type type = LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED;
  uint32_t original_context = 0;  // YaRN's original context; 0: as the file says
  std::vector<std::pair<float llama_context_params::*, float>> numbers;
};

// Maximum number of tokens in one pass of the engine. Longer batches take several passes.
constexpr uint32_t kPassTokens = 512;

struct ContextOptions {
  uint32_t kv_tokens = 4096;      // cells of the KV cache
  // true: all sequences share one pool of cells, and a copied prefix takes no cells. false: each sequence has a stream of kv_tokens /
  // max_sequences cells, attention reads only those, and a copied prefix takes cells again.
  bool is_kv_unified = true;
  uint32_t batch_tokens = 512;    // maximum tokens of one step
  uint32_t whole_rows = 0;        // rows of the largest non-causal chunk of a medium
  uint32_t max_sequences = 256;   // sequence ids are 0 to max_sequences - 1
  uint32_t max_outputs = 64;      // maximum rows of logits in one step
  int32_t sampled_vocab = 0;      // ids that samplers know, if they are another model's; 0: this model's
  int32_t threads = 1;            // maximum
  uint32_t rollback_tokens = 0;   // tokens that can be taken back in a recurrent sequence; the engine may support fewer or none
  double cache_bytes = 0;         // bytes that the cache is expected to take, without that of the draft head; 0: unknown
  bool has_draft_head = false;    // use the model's own head, if it has one, as a source of drafts
  bool cache_on_gpu = true;       // cache of the layers on the GPU; false: in the processor's memory, where their attention then runs
  bool fused_attention = true;    // false: plain matmuls
  bool keeps_fusion = false;      // fused also where the engine's fused attention rounds
  bool is_window_cache_full = true;  // false: layers with a sliding window have cells for the window and a step only
  bool is_deterministic = false;     // throw if a token's logits may have other bits in another batch
  ggml_type cache_type = GGML_TYPE_F16;  // type of the numbers in the KV cache; quantized ones need fused attention
  RopeOptions rope;
};

// Returns true if cells have 32 bits and are on a CPU.
bool HasWideCells(const ContextOptions& options, const Model& model);

llama_context_params ParamsOf(const ContextOptions& options, const Model& model);

}  // namespace onpolicy
