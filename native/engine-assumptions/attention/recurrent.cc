// Recurrent layers. A sequence's tokens are added one after the other.
#include <algorithm>
#include <cmath>

#include "engine-assumptions/attention/shared-nodes.h"
#include "engine-assumptions/attention/state-places.h"

namespace onpolicy::attention {
namespace {

constexpr int64_t kUnitsPerThread = 4;  // with fewer heads, each is split by the rows of its state
constexpr int64_t kHeadParts = 4;

const float* FloatsAt(const ggml_tensor* tensor, int64_t i1, int64_t i2, int64_t i3) {
  return reinterpret_cast<const float*>(static_cast<const char*>(tensor->data) + static_cast<size_t>(i1) * tensor->nb[1] +
                                        static_cast<size_t>(i2) * tensor->nb[2] + static_cast<size_t>(i3) * tensor->nb[3]);
}

// Returns a pointer to a token's numbers in one head, and the distance to the next token's.
Tokens TokensOf(const ggml_tensor* tensor, int64_t head, int64_t token, int64_t sequence) {
  return {FloatsAt(tensor, head, token, sequence), tensor->nb[2] / sizeof(float)};
}

// src: q, k, v, gates, beta, state. The node: (sequences, tokens, heads, size), then the states after the last token, after the one before ...
void DeltaShare(const Kernels& kernels, const ggml_tensor* node, int thread, int threads, float* memory) {
  const ggml_tensor *q = node->src[0], *k = node->src[1], *v = node->src[2], *gates = node->src[3], *beta = node->src[4];
  const StatePlaces states = PlacesOf(node, thread);
  const int64_t size = v->ne[0], heads = v->ne[1], tokens = v->ne[2], sequences = v->ne[3], all = heads * sequences;
  const int64_t parts = all < kUnitsPerThread * threads ? kHeadParts : 1, rows = size / parts;
  auto* const y = static_cast<float*>(node->data);
  DeltaRows delta{};
  delta.size = static_cast<int>(size);
  delta.rows = static_cast<int>(rows);
  delta.has_gates = gates->ne[0] > 1;
  delta.scale = 1 / std::sqrt(static_cast<float>(size));
  delta.factors = memory;
  delta.states = node->op_params[0];
  delta.state_stride = states.to_snapshot;
  for (int64_t unit = all * parts * thread / threads; unit < all * parts * (thread + 1) / threads; ++unit) {
    const int64_t index = unit / parts, head = index % heads, sequence = index / heads, row = unit % parts * rows;
    const int64_t from_row = states.rows ? states.rows[sequence] : sequence;
    const auto* const from = reinterpret_cast<const float*>(states.from + static_cast<size_t>(from_row) * states.from_row);
    const int64_t place = (head * size + row) * size;
    delta.to = states.to + static_cast<size_t>(sequence) * states.to_sequence + place;
    for (int64_t token = 0; token < tokens; token += kDeltaTokens) {
      delta.tokens = static_cast<int>(std::min<int64_t>(kDeltaTokens, tokens - token));
      delta.after = tokens - token - delta.tokens;
      delta.from = token == 0 ? from + place : delta.to;
      delta.q = TokensOf(q, head % q->ne[1], token, sequence / (sequences / q->ne[3]));
      delta.k = TokensOf(k, head % k->ne[1], token, sequence / (sequences / k->ne[3]));
      delta.v = TokensOf(v, head, token, sequence);
      delta.v.data += row;
      delta.gates = TokensOf(gates, head, token, sequence);
      delta.beta = TokensOf(beta, head, token, sequence);
      delta.y = y + ((sequence * tokens + token) * heads + head) * size + row;
      delta.y_token = static_cast<size_t>(heads * size);
      kernels.delta(delta);
    }
  }
}

// src[0]: (sequences, channels, tokens left of earlier steps, then new tokens); src[1]: (channels, taps). The node: (sequences, tokens,
// channels).
void ConvolutionShare(const Kernels& kernels, const ggml_tensor* node, int thread, int threads) {
  const ggml_tensor *x = node->src[0], *weights = node->src[1];
  const int64_t channels = node->ne[0], parts = (channels + kLanes - 1) / kLanes, all = parts * node->ne[2];
  for (int64_t part = all * thread / threads; part < all * (thread + 1) / threads; ++part) {
    const int64_t sequence = part / parts, channel = part % parts * kLanes;
    kernels.convolve({FloatsAt(x, channel, sequence, 0), x->nb[1] / sizeof(float), FloatsAt(weights, channel, 0, 0),
                      static_cast<int>(weights->ne[0]), static_cast<int>(std::min<int64_t>(kLanes, channels - channel)), node->ne[1],
                      const_cast<float*>(FloatsAt(node, 0, sequence, 0)) + channel, node->nb[1] / sizeof(float)});
  }
}

bool IsRecurrent(const ggml_tensor* node) {
  if (node->op == GGML_OP_SSM_CONV) return node->src[1]->ne[0] <= kMostTaps;
  if (node->op != GGML_OP_GATED_DELTA_NET) return false;
  const int64_t size = node->src[2]->ne[0];
  return size == 16 || size == 32 || size == 64 || size == 128;
}

size_t RecurrentThreadBytes(const ggml_tensor* node) {
  return node->op == GGML_OP_SSM_CONV ? 0 : static_cast<size_t>(node->src[2]->ne[0]) * kDeltaTokens * sizeof(float);
}

void RecurrentShare(const Kernels& kernels, const ggml_tensor* node, int thread, int threads, float* memory) {
  if (node->op == GGML_OP_SSM_CONV) ConvolutionShare(kernels, node, thread, threads);
  else DeltaShare(kernels, node, thread, threads, memory);
}

}  // namespace

const SharedKind kRecurrent = {IsRecurrent, RecurrentThreadBytes, RecurrentShare};

}  // namespace onpolicy::attention
