// Differences of the trainable architectures from a plain decoder. To add one, add a row to traits.cc.
#pragma once
#include <string>

#include "base/status.h"
#include "engine-assumptions/library.h"

namespace onpolicy::training {

// kGelu: as the engine computes it, which on CPUs is a table of 16-bit values.
// kClampedSilu: that of gpt-oss.
enum class Activation { kSilu, kGelu, kExactGelu, kClampedSilu };

enum class ExpertUse { kNone, kSome, kAll };

// Differences of an architecture from a plain decoder.
struct Traits {
  const char* name;
  int rope_mode = GGML_ROPE_TYPE_NEOX;
  int sections_mode = 0;  // of a file with sections of positions; 0: the engine takes none
  ExpertUse experts = ExpertUse::kNone;
  bool has_shared_expert = false;  // which all tokens take
  bool has_dense_beside = false;   // what all tokens take is the feed-forward part of layers without experts; both have norms of their own
  bool is_router_logistic = false;  // scores are independent of each other, not a softmax
  bool has_head_norms = false;       // of queries and keys
  bool are_head_norms_wide = false;  // over all heads at once
  bool are_head_norms_last = false;  // after the rotation
  bool has_input_norms = true;       // in front of a layer's parts
  bool has_post_norms = false;       // of what a part of a layer adds to the stream
  bool is_norm_centered = false;  // norms take the mean away
  bool is_parallel = false;       // both parts of a layer read its normed input
  bool is_gate_fused = false;        // one matrix makes gate and up
  bool has_fixed_outputs = false;  // the engine takes no adapter of what adds to the stream
  bool is_gemma = false;         // GELU, and an embedding scaled by the square root of the width
  bool has_multipliers = false;  // of embedding, residual stream and logits
  double window_pattern = 0;     // one layer in so many has no window, unless the file says otherwise; 0: none has one
  double window = 0;             // unless the file says otherwise
  int64_t window_layers = 0;     // only the model of so many layers has windows; 0: all have
  double local_base = 0;         // of the rotation in layers with a window; 0: as in the others
  bool is_local_unscaled = false;  // the rotation in layers with a window
  bool is_global_unrotated = false;  // layers without a window, where others have one
  double attention_cap = 0, logit_cap = 0;  // unless the file says otherwise
  int64_t unrotated_step = 0;               // one layer in so many is not rotated; 0: all are
  int64_t delta_net_step = 0;               // all but one layer in so many have a gated delta net, unless the file says otherwise
  bool is_delta_net_grouped = false;        // as DeltaNetShape has it
  const char* ffn_norm = "ffn_norm";  // its name in the file
  const char* output_norm = "output_norm";
  int64_t layers_of_largest = 0;  // the model of so many layers scales attention by the width of its heads' share
  bool has_sinks = false;
  bool reads_yarn = false;  // the file says more of YaRN than its factor
  Activation activation = Activation::kSilu;
  bool has_own_inputs = false;   // each layer has a further input of a token, if the file says so
  bool has_streams = false;      // as gemma3n, whose numbers of them and of layers with keys are the engine's
  bool is_attention_unscaled = false, are_values_normed = false;
};

// Throws UNSUPPORTED for an unknown architecture, listing the known ones.
const Traits& TraitsOf(const std::string& architecture);

}  // namespace onpolicy::training
