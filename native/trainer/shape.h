// A GGUF file's metadata -> the numbers that say how the parts of a decoder connect. Each architecture is a row of traits.
#pragma once
#include <string>
#include <vector>

#include "base/status.h"
#include "llama/library.h"

namespace onpolicy::training {

// kGelu: as the engine computes it; on CPUs that is a table of 16-bit values.
enum class Activation { kSilu, kGelu, kExactGelu };

// Which positions a layer's tokens see, and its rotary embedding.
struct Rotation {
  bool is_local = false;  // whether they see the window only
  bool is_rotated = true;
  float base = 10000;
  float scale = 1;
};

struct Shape {
  std::string architecture;
  int64_t vocabulary = 0;
  int64_t width = 0;  // of the residual stream
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_size = 0;
  int64_t hidden = 0;        // width of the feed-forward part, or of one expert
  int64_t experts = 0;       // 0: every token takes the one feed-forward part
  int64_t experts_used = 1;  // of each token
  int64_t context = 0;
  float norm_epsilon = 1e-5f;
  float attention_scale = 0;
  float attention_cap = 0;  // scores become cap tanh(score / cap); 0: they stay
  int rope_size = 0;        // rotated part of a head
  int rope_mode = 0;        // as ggml names them
  Activation activation = Activation::kSilu;  // in the feed-forward part
  float embedding_scale = 1;
  float residual_scale = 1;  // of what a part of a layer adds to the stream
  float logit_scale = 1;
  float logit_cap = 0;             // as attention_cap, of the scaled logits
  int64_t window = 0;              // positions that layers with a window see; 0: there are no such layers
  std::vector<Rotation> rotations;  // (layers)
  bool has_head_norms = false;      // of queries and keys
  bool has_post_norms = false;      // of what a part of a layer adds to the stream
  bool is_gate_fused = false;       // one matrix makes gate and up

  void MakeExact() {
    if (activation == Activation::kGelu) activation = Activation::kExactGelu;
  }
  int64_t heads_per_kv() const { return heads / kv_heads; }
  int64_t query_width() const { return heads * head_size; }
  int64_t kv_width() const { return kv_heads * head_size; }
  // Numbers per token between the matrices of the feed-forward part.
  int64_t hidden_width() const { return hidden * experts_used; }
};

// Fails with UNSUPPORTED for what the trainer does not compute, by its name. `vocabulary` is left to the tensors.
Shape ReadShape(gguf_context* gguf);

}  // namespace onpolicy::training
