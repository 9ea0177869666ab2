// A GGUF file's metadata -> the numbers that describe how the parts of a decoder connect. Each architecture is a row of traits.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "trainer/weights/traits.h"

namespace onpolicy::training {

// Positions per token for rotations with sections.
constexpr int64_t kPositions = 4;

// A layer's rotary embedding.
struct Rotation {
  bool is_on = true;
  bool has_factors = true;  // uses the file's frequency factors, if it has any
  int size = 0;  // rotated part of a head
  int mode = 0;  // as ggml names them
  std::array<int, kPositions> sections = {};  // pairs that turn by each of a token's four positions, of which the last is 0 in texts; 0: none do
  float base = 10000;
  float scale = 1;
  // Parameters of YaRN, named as in ggml.
  float extension = 0;
  float magnitude = 1;
  float beta_fast = 32, beta_slow = 1;
  int original_context = 0;

  bool has_sections() const { return sections[0] + sections[1] + sections[2] + sections[3] > 0; }
};

// A layer's attention.
struct AttentionShape {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_size = 0;
  int64_t window = 0;  // positions that a token sees; 0: all
  float scale = 0;
  float cap = 0;          // scores become cap tanh(score / cap); 0: unchanged
  bool has_sinks = false;  // each head has a further score without a value
  bool are_norms_wide = false;  // of queries and keys: over all heads at once
  bool are_norms_last = false;  // after the rotation
  bool are_values_normed = false;
  int64_t kv_layer = -1;        // layer whose keys and values it reads; -1: its own
  bool is_kv_read = false;      // other layers read its keys and values
  bool is_gated = false;        // each head's query is followed by a gate of its output
  Rotation rotation;

  int64_t heads_per_kv() const { return heads / kv_heads; }
  int64_t query_width() const { return heads * head_size; }
  int64_t kv_width() const { return kv_heads * head_size; }
};

// A layer's gated delta net.
struct DeltaNetShape {
  int64_t key_heads = 0;  // of queries, too
  int64_t value_heads = 0;
  int64_t size = 0;    // of a head: its state is a square of it
  int64_t kernel = 0;  // tokens that the convolution sees
  // Heads of values that read the same head of queries and keys are adjacent; otherwise head h reads head h % key_heads.
  bool is_grouped = false;

  int64_t values_per_key() const { return value_heads / key_heads; }
  int64_t key_width() const { return key_heads * size; }
  int64_t value_width() const { return value_heads * size; }
  int64_t width() const { return 2 * key_width() + value_width(); }  // of the convolved values
};

// The part of a layer by which tokens see others.
enum class MixerKind { kAttention, kDeltaNet, kConvolution };

struct LayerShape {
  MixerKind mixer = MixerKind::kAttention;
  AttentionShape attention = {};
  int64_t experts = 0;  // 0: one feed-forward part for all tokens
  int64_t hidden = 0;   // width of the feed-forward part
};

// How scores of a router become the weights of the best experts: a softmax of all scores, over its sum of the best; a softmax of the
// best scores; or the logistic function of each, over their sum.
enum class RoutingKind { kSoftMax, kBestScores, kLogistic };

struct Shape {
  std::string architecture;
  const Traits* traits = nullptr;  // of the architecture
  int64_t vocabulary = 0;
  int64_t width = 0;  // of the residual stream
  int64_t layers = 0;
  int64_t streams = 1;        // residual streams of a token
  int64_t sparse_layers = 0;  // the first ones, of whose gates only those far above their mean count
  int64_t laurel_rank = 0;    // of a low-rank matrix beside each layer's attention; 0: there is none
  int64_t heads = 0;     // of attention; so are the next two
  int64_t kv_heads = 0;
  int64_t head_size = 0;
  DeltaNetShape delta_net;   // of the layers that have one
  int64_t input_width = 0;         // of each layer's own input of a token; 0: there is none
  int64_t convolution_kernel = 0;  // of the layers that have a short convolution
  int64_t hidden = 0;        // width of the feed-forward part
  int64_t experts = 0;       // of the layers that have some
  int64_t experts_used = 1;  // of each token
  int64_t expert_hidden = 0;
  int64_t shared_hidden = 0;  // of the expert that all tokens take; 0: there is none
  int64_t dense_layers = 0;   // the first ones, which have no experts
  RoutingKind routing = RoutingKind::kSoftMax;
  float expert_scale = 1;  // of the weights
  int64_t context = 0;
  int64_t position_limit = 0;  // of a row's positions; 0: there is none
  float norm_epsilon = 1e-5f;
  Activation activation = Activation::kSilu;  // in the feed-forward part
  float embedding_scale = 1;
  float residual_scale = 1;  // of what a part of a layer adds to the stream
  float logit_scale = 1;
  float logit_cap = 0;  // of the scaled logits, as attention's
  int64_t window = 0;   // positions that layers with a window see; 0: there are no such layers
  std::vector<LayerShape> of_layer;  // (layers)

  void MakeExact() {
    if (activation == Activation::kGelu) activation = Activation::kExactGelu;
  }
  int64_t stream_width() const { return streams * width; }
  int64_t expert_layers() const { return experts > 0 ? layers - dense_layers : 0; }
  bool has_delta_nets() const { return delta_net.size > 0; }
  bool is_recurrent() const { return has_delta_nets() || convolution_kernel > 0; }
};

// Fails with UNSUPPORTED, naming the part that the trainer does not compute. `vocabulary` is set from the tensors later.
Shape ReadShape(gguf_context* gguf);

}  // namespace onpolicy::training
