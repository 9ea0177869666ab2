#include "trainer/product.h"

#include <algorithm>
#include <atomic>

#include "trainer/q8-product.h"

namespace onpolicy::training {
namespace {

constexpr int64_t kPanelsAtOnce = 4;  // that a thread takes: few, so that none waits long for another at the end

// src[0]: (size, tokens)
void RoundShare(Tensor rounded, int thread, int threads, void*) {
  const Tensor x = rounded->src[0];
  const int64_t groups = (x->ne[1] + kTokenGroup - 1) / kTokenGroup;
  RoundTokens(static_cast<const float*>(x->data), x->ne[0], x->ne[1], groups * thread / threads,
              groups * (thread + 1) / threads, rounded->data);
}

// Fills (outputs, tokens). src[0]: (size, outputs) in Q8_0; src[1]: the rounded tokens. `counter`: panels that are taken.
void MultiplyShare(Tensor y, int, int, void* counter) {
  const Tensor weight = y->src[0];
  const int64_t panels = (y->ne[0] + kOutputPanel - 1) / kOutputPanel;
  auto& next = *static_cast<std::atomic<int64_t>*>(counter);
  for (int64_t first = next.fetch_add(kPanelsAtOnce); first < panels; first = next.fetch_add(kPanelsAtOnce))
    Q8Product(static_cast<float*>(y->data), weight->data, y->src[1]->data, weight->ne[0], y->ne[0], y->ne[1], first,
              std::min(panels, first + kPanelsAtOnce));
}

}  // namespace

Products::Products(Graph& graph, const Device& device)
    : graph_(graph), has_fast_q8_(device.is_cpu() && HasQ8Product()) {}

Tensor Products::Multiply(Tensor weight, Tensor x) {
  if (!has_fast_q8_ || weight->type != GGML_TYPE_Q8_0) return graph_.MulMat(weight, x);
  return graph_.Custom(weight->ne[1], x->ne[1], {weight, Rounded(x)}, MultiplyShare, graph_.Counter());
}

Tensor Products::Rounded(Tensor x) {
  if (x == last_x_) return last_rounded_;
  const auto floats = static_cast<int64_t>(RoundedBytes(x->ne[0], x->ne[1]) / sizeof(float));
  last_x_ = x;
  last_rounded_ = graph_.Custom(floats, 1, {x}, RoundShare);
  return last_rounded_;
}

}  // namespace onpolicy::training
