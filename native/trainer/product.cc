#include "trainer/product.h"

#include <algorithm>
#include <atomic>

#include "kernels/avx512.h"
#include "kernels/f32-product.h"
#include "kernels/q8-product.h"

namespace onpolicy::training {
namespace {

// Work that a thread takes at a time: little, so that all threads end at about the same time.
constexpr int64_t kPanelsAtOnce = 4;
constexpr int64_t kColumnsAtOnce = 96;

// Runs `work` on pieces 0 to `count` - 1, each by the next free thread.
template <typename Work>
void Share(void* counter, int64_t count, Work work) {
  auto& next = *static_cast<std::atomic<int64_t>*>(counter);
  for (int64_t piece = next++; piece < count; piece = next++) work(piece);
}

// src[0]: (size, tokens)
void RoundShare(Tensor rounded, int thread, int threads, void*) {
  const Tensor x = rounded->src[0];
  const int64_t groups = (x->ne[1] + kTokenGroup - 1) / kTokenGroup;
  RoundTokens(static_cast<const float*>(x->data), x->ne[0], x->ne[1], groups * thread / threads,
              groups * (thread + 1) / threads, rounded->data);
}

// Fills (outputs, tokens). src[0]: (size, outputs) in Q8_0; src[1]: the rounded tokens.
void Q8Share(Tensor y, int, int, void* counter) {
  const Tensor weight = y->src[0];
  const int64_t panels = (y->ne[0] + kOutputPanel - 1) / kOutputPanel;
  Share(counter, (panels + kPanelsAtOnce - 1) / kPanelsAtOnce, [&](int64_t piece) {
    const int64_t first = piece * kPanelsAtOnce;
    Q8Product(static_cast<float*>(y->data), weight->data, y->src[1]->data, weight->ne[0], y->ne[0], y->ne[1], first,
              std::min(panels, first + kPanelsAtOnce));
  });
}

StridedMatrix MatrixOf(Tensor x, int64_t index) {
  const auto* data = reinterpret_cast<const float*>(static_cast<const char*>(x->data) +
                                                    static_cast<size_t>(index) * x->nb[2]);
  return {data, static_cast<int64_t>(x->nb[0] / sizeof(float)), static_cast<int64_t>(x->nb[1] / sizeof(float))};
}

// Fills (outputs, columns, n). src[0]: (size, outputs, n); src[1]: (size, columns, n); both in F32.
void F32Share(Tensor y, int, int, void* counter) {
  const int64_t outputs = y->ne[0], columns = y->ne[1];
  const int64_t parts = (columns + kColumnsAtOnce - 1) / kColumnsAtOnce;
  Share(counter, parts * y->ne[2], [&](int64_t piece) {
    const int64_t index = piece / parts, first = piece % parts * kColumnsAtOnce;
    F32Product(static_cast<float*>(y->data) + index * outputs * columns, MatrixOf(y->src[0], index),
               MatrixOf(y->src[1], index), y->src[0]->ne[0], outputs, first,
               std::min(columns, first + kColumnsAtOnce));
  });
}

}  // namespace

Products::Products(Graph& graph, const Device& device)
    : graph_(graph), is_cpu_(device.is_cpu()), has_own_(is_cpu_ && HasAvx512()) {}

Tensor Products::Multiply(Tensor a, Tensor b) {
  if (has_own_ && a->type == GGML_TYPE_Q8_0)
    return graph_.Custom({a->ne[1], b->ne[1], 1}, {a, Rounded(b)}, Q8Share, graph_.Counter());
  if (has_own_ && a->type == GGML_TYPE_F32)
    return graph_.Custom({a->ne[1], b->ne[1], a->ne[2]}, {a, b}, F32Share, graph_.Counter());
  if (is_cpu_) return graph_.MulMat(a, b);
  const Halves halves = HalvesOf(b);
  return graph_.Plus(graph_.MulMat(a, halves.high), graph_.MulMat(a, halves.low));
}

Tensor Products::Transposed(Tensor x) {
  Tensor transposed = graph_.Transpose(x);
  return has_own_ ? transposed : graph_.Contiguous(transposed);
}

Products::Halves Products::HalvesOf(Tensor x) {
  if (x == last_x_) return last_halves_;
  Tensor whole = graph_.Contiguous(x);
  Tensor high = graph_.Converted(graph_.Converted(whole, GGML_TYPE_F16), GGML_TYPE_F32);
  last_x_ = x;
  last_halves_ = {high, graph_.Minus(whole, high)};
  return last_halves_;
}

Tensor Products::Rounded(Tensor x) {
  if (x == last_x_) return last_rounded_;
  const auto floats = static_cast<int64_t>(RoundedBytes(x->ne[0], x->ne[1]) / sizeof(float));
  last_x_ = x;
  last_rounded_ = graph_.Custom({floats, 1, 1}, {x}, RoundShare);
  return last_rounded_;
}

}  // namespace onpolicy::training
