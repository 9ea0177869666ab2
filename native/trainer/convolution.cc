#include "trainer/convolution.h"

#include <algorithm>
#include <cmath>

#include "kernels/attention/kernels.h"
#include "trainer/graphs/share.h"

namespace onpolicy::training {
namespace {

// Channels that a thread takes at a time.
constexpr int64_t kChannelsAtOnce = 128;

struct Convolution {
  const std::vector<int32_t>* previous;
  std::atomic<int64_t>* next;
};

// Each product is added with one rounding, as when models are served.
void AddWeighted(const float* x, const float* weights, int64_t count, float* y) {
  if (const attention::Kernels* kernels = attention::BestKernels()) return kernels->add_weighted(x, weights, count, y);
  for (int64_t i = 0; i < count; ++i) y[i] = std::fma(x[i], weights[i], y[i]);
}

// Visits the terms (y's token, x's token, weight's index) of all sums, y by y, and for each y the oldest x first.
template <typename Visit>
void EachPair(const std::vector<int32_t>& previous, int64_t kernel, Visit visit) {
  std::vector<int32_t> window(static_cast<size_t>(kernel));
  for (int32_t token = 0; token < static_cast<int32_t>(previous.size()); ++token) {
    int32_t at = token;
    for (int64_t j = kernel - 1; j >= 0; --j) {
      window[static_cast<size_t>(j)] = at;
      if (at >= 0) at = previous[static_cast<size_t>(at)];
    }
    for (int64_t j = 0; j < kernel; ++j)
      if (window[static_cast<size_t>(j)] >= 0) visit(token, window[static_cast<size_t>(j)], j);
  }
}

// Fills (channels, row). src[0]: (channels, row); src[1]: (kernel, channels).
template <bool kIsBack>
void ConvolutionShare(Tensor to, int, int, void* data) {
  const auto& convolution = *static_cast<const Convolution*>(data);
  const Tensor from = to->src[0], weight = to->src[1];
  const int64_t channels = to->ne[0], kernel = weight->ne[0];
  Share(*convolution.next, (channels + kChannelsAtOnce - 1) / kChannelsAtOnce, [&](int64_t piece) {
    const int64_t first = piece * kChannelsAtOnce, count = std::min(kChannelsAtOnce, channels - first);
    auto* weights = reinterpret_cast<float*>(ThreadMemory(static_cast<size_t>(kernel * count) * sizeof(float)));
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < kernel; ++j) weights[j * count + i] = static_cast<const float*>(weight->data)[(first + i) * kernel + j];
    const auto target = [&](int32_t token) { return static_cast<float*>(to->data) + token * channels + first; };
    const auto source = [&](int32_t token) { return static_cast<const float*>(from->data) + token * channels + first; };
    for (int32_t token = 0; token < to->ne[1]; ++token) std::fill_n(target(token), count, 0.0f);
    EachPair(*convolution.previous, kernel, [&](int32_t y, int32_t x, int64_t j) {
      AddWeighted(source(kIsBack ? y : x), weights + j * count, count, target(kIsBack ? x : y));
    });
  });
}

template <bool kIsBack>
Tensor Node(Graph& graph, Tensor x, Tensor weight, const std::vector<int32_t>& previous) {
  return graph.Custom({x->ne[0], x->ne[1], 1}, {x, weight}, ConvolutionShare<kIsBack>,
                      graph.Keep(Convolution{&previous, graph.Counter()}));
}

}  // namespace

Tensor Convolved(Graph& graph, Tensor x, Tensor weight, const std::vector<int32_t>& previous) {
  return Node<false>(graph, x, weight, previous);
}

Tensor ConvolvedBack(Graph& graph, Tensor gradient, Tensor weight, const std::vector<int32_t>& previous) {
  return Node<true>(graph, gradient, weight, previous);
}

}  // namespace onpolicy::training
