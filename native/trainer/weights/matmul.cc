#include "trainer/weights/matmul.h"

#include <algorithm>

#include "kernels/f32-matmul.h"
#include "kernels/matmul/matmul.h"
#include "trainer/graphs/share.h"
#include "trainer/weights/expert-matmul.h"

namespace onpolicy::training {
namespace {

namespace np = matmul;

// Work that a thread takes at a time. It is small, so that all threads end at about the same time.
constexpr int64_t kPanelsAtOnce = 8;
constexpr int64_t kColumnsAtOnce = 96;

// Shares the work of the node whose data is `counter`.
template <typename Work>
void ShareBy(void* counter, int64_t count, Work work) {
  Share(*static_cast<std::atomic<int64_t>*>(counter), count, work);
}

// src[0]: (size, tokens); data: the weights' format.
void RoundShare(Tensor rounded, int thread, int threads, void* data) {
  const auto& format = *static_cast<const np::Format*>(data);
  const Tensor x = rounded->src[0];
  const int64_t blocks = x->ne[0] / np::kBlock;
  np::RoundBlocks(*np::BestKernels(), format, x->ne[0], {x->data, x->nb[1], x->ne[1]}, blocks * thread / threads,
                  blocks * (thread + 1) / threads, static_cast<int32_t*>(rounded->data));
}

// Fills (outputs, tokens). src[0]: (size, outputs), of a type with a format; src[1]: the rounded tokens.
template <bool kIsPacked>
void WeightShare(Tensor y, int, int, void* counter) {
  const Tensor weight = y->src[0];
  const np::Format& format = *np::FormatOf(weight->type);
  const int64_t size = weight->ne[0], outputs = weight->ne[1];
  const np::PackedMatrix all{&format, static_cast<const uint8_t*>(weight->data), size, outputs};
  ShareBy(counter, (all.panel_count() + kPanelsAtOnce - 1) / kPanelsAtOnce, [&](int64_t piece) {
    const int64_t panel = piece * kPanelsAtOnce, row = panel * np::kPanel;
    np::PackedMatrix part = all;
    part.rows = std::min(outputs - row, kPanelsAtOnce * np::kPanel);
    if (kIsPacked) {
      part.panels += np::PackedBytes(format, size, row);
    } else {
      uint8_t* packed = ThreadMemory(np::PackedBytes(format, size, part.rows));
      np::PackPanels(part, part.panels + row * format.row_bytes(size), 0, part.panel_count(), packed);
      part.panels = packed;
    }
    np::MultiplyPanels(*np::BestKernels(), part, static_cast<const int32_t*>(y->src[1]->data), y->ne[1], 0,
                       part.panel_count(), {static_cast<float*>(y->data) + row, outputs});
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
  ShareBy(counter, parts * y->ne[2], [&](int64_t piece) {
    const int64_t index = piece / parts, first = piece % parts * kColumnsAtOnce;
    F32Matmul(static_cast<float*>(y->data) + index * outputs * columns, MatrixOf(y->src[0], index),
               MatrixOf(y->src[1], index), y->src[0]->ne[0], outputs, first,
               std::min(columns, first + kColumnsAtOnce));
  });
}

}  // namespace

Matmuls::Matmuls(Graph& graph, const Device& device)
    : graph_(graph), is_cpu_(device.is_cpu()), has_own_(is_cpu_ && HasAvx512()) {}

bool Matmuls::HasKernels(ggml_type type, int64_t size) {
  return np::BestKernels() && np::FormatOf(type) && size % np::kBlock == 0;
}

bool Matmuls::CanReadBack(ggml_type type) { return type == GGML_TYPE_MXFP4 && HasAvx512(); }

Tensor Matmuls::Multiply(Tensor a, Tensor b) {
  if (has_own_ && a->type == GGML_TYPE_F32)
    return graph_.Custom({a->ne[1], b->ne[1], a->ne[2]}, {a, b}, F32Share, graph_.Counter());
  if (is_cpu_) return graph_.MulMat(a, b);
  const Halves halves = HalvesOf(b);
  return graph_.Plus(graph_.MulMat(a, halves.high), graph_.MulMat(a, halves.low));
}

Tensor Matmuls::Forward(Tensor weight, Tensor x) {
  if (!is_cpu_ || !HasKernels(weight->type, weight->ne[0])) return Multiply(weight, x);
  return graph_.Custom({weight->ne[1], x->ne[1], 1}, {weight, Rounded(x, weight->type)}, WeightShare<false>, graph_.Counter());
}

Tensor Matmuls::ForwardOf(Tensor weight, Tensor x, Tensor ids) {
  if (!is_cpu_ || !HasKernels(weight->type, weight->ne[0])) return graph_.MulMatOf(weight, x, ids);
  return graph_.Custom({weight->ne[1], ids->ne[0], ids->ne[1]}, {weight, x, ids}, ExpertShare, graph_.Counter());
}

Tensor Matmuls::BackwardOf(const Linear& linear, Tensor gradient, Tensor ids) {
  if (linear.is_read_back)
    return graph_.Custom({linear.in(), ids->ne[0], ids->ne[1]}, {linear.weight, gradient, ids}, ExpertBackShare, graph_.Counter());
  Tensor weight = graph_.At(linear.transposed, linear.transposed_type, {linear.out(), linear.in(), linear.experts()});
  return graph_.MulMatOf(weight, gradient, ids);
}

Tensor Matmuls::Backward(const Linear& linear, Tensor gradient) {
  Tensor weight = graph_.At(linear.transposed, linear.transposed_type, {linear.out(), linear.in()});
  if (!linear.is_transposed_packed) return Forward(weight, gradient);
  return graph_.Custom({weight->ne[1], gradient->ne[1], 1}, {weight, Rounded(gradient, weight->type)}, WeightShare<true>,
                       graph_.Counter());
}

Tensor Matmuls::Transposed(Tensor x) {
  Tensor transposed = graph_.Transpose(x);
  return has_own_ ? transposed : graph_.Contiguous(transposed);
}

Matmuls::Halves Matmuls::HalvesOf(Tensor x) {
  if (x == last_x_) return last_halves_;
  Tensor whole = graph_.Contiguous(x);
  Tensor high = graph_.Converted(graph_.Converted(whole, GGML_TYPE_F16), GGML_TYPE_F32);
  last_x_ = x;
  last_halves_ = {high, graph_.Minus(whole, high)};
  return last_halves_;
}

Tensor Matmuls::Rounded(Tensor x, ggml_type type) {
  if (x == last_x_ && type == last_type_) return last_rounded_;
  const np::Format* format = np::FormatOf(type);
  const auto floats = static_cast<int64_t>(np::RoundedBytes(*format, x->ne[0], x->ne[1]) / sizeof(float));
  last_x_ = x;
  last_type_ = type;
  last_rounded_ = graph_.Custom({floats, 1, 1}, {x}, RoundShare, const_cast<np::Format*>(format));
  return last_rounded_;
}

}  // namespace onpolicy::training
