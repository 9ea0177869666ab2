#include "trainer/linear.h"

#include <algorithm>

#include "kernels/low-rank.h"
#include "trainer/weights/adapter-matmul.h"
#include "trainer/weights/expert-matmul.h"

namespace onpolicy::training {
namespace {

constexpr size_t kOutputAlignment = 256;

// Works in place on y, (size, row). src[1]: the factor as (size, rank) columns; src[2]: (rank, row).
void AddLowRankShare(Tensor y, int thread, int threads, void*) {
  const int64_t row = y->ne[1];
  AddLowRank(static_cast<float*>(y->data), static_cast<const float*>(y->src[1]->data),
             static_cast<const float*>(y->src[2]->data), y->ne[0], y->src[2]->ne[0], row * thread / threads,
             row * (thread + 1) / threads);
}

// Fills (size, rank); src[0]: (size, row); src[1]: (rank, row).
void OuterShare(Tensor out, int thread, int threads, void*) {
  constexpr int64_t kStrip = 64;
  const int64_t strips = (out->ne[0] + kStrip - 1) / kStrip;
  OuterLowRank(static_cast<float*>(out->data), static_cast<const float*>(out->src[0]->data),
               static_cast<const float*>(out->src[1]->data), out->ne[0], out->ne[1], out->src[0]->ne[1],
               strips * thread / threads * kStrip, std::min(out->ne[0], strips * (thread + 1) / threads * kStrip));
}

// Destination of a module's gradients.
struct GradientSum {
  Adapter* adapter;
  int module;
  float scale;
};

// Adds a gradient, the data of the node, to its sum.
template <bool kIsA>
void AccumulateShare(Tensor gradient, int thread, int threads, void* data) {
  const auto& [adapter, module, scale] = *static_cast<const GradientSum*>(data);
  const auto* numbers = static_cast<const float*>(gradient->data);
  if constexpr (kIsA)
    adapter->AccumulateA(module, scale, numbers, {thread, threads});
  else
    adapter->AccumulateB(module, scale, numbers, {thread, threads});
}

size_t Aligned(size_t bytes) { return (bytes + kOutputAlignment - 1) / kOutputAlignment * kOutputAlignment; }

}  // namespace

Tensor Linears::Forward(const Linear& linear, Tensor x) {
  Tensor y = matmuls_.Forward(linear.weight, x);
  if (IsTrained(linear)) y = PlusAdapter(y, adapter_->module(linear.module), x);
  return linear.bias ? graph_.Plus(y, linear.bias) : y;
}

Tensor Linears::PlusAdapter(Tensor y, const Module& module, Tensor x) {
  const float scale = adapter_->scale();
  Tensor a = Factor(module.a_rows, module.in, module.rank);
  if (is_cpu_ && HasAdapterKernels(module.in, module.out))
    return PlusWide(graph_, y, Factor(module.b_columns, module.out, module.rank), Narrow(graph_, a, x), scale);
  Tensor low = matmuls_.Multiply(a, x);
  return graph_.Plus(y, graph_.Scale(matmuls_.Multiply(Factor(module.b_rows, module.rank, module.out), low), scale));
}

Tensor Linears::PlusLowRank(Tensor y, Slot rows, Slot columns, Tensor low) {
  const int64_t rank = low->ne[0], size = y->ne[0];
  if (!is_cpu_) return graph_.Plus(y, graph_.MulMat(Factor(rows, rank, size), low));
  return graph_.Custom(y, {Factor(columns, size, rank), low}, AddLowRankShare);
}

Tensor Linears::Outer(Tensor x, Tensor low) {
  return is_cpu_ ? graph_.Custom({x->ne[0], low->ne[0], 1}, {x, low}, OuterShare) : graph_.OutProd(x, low);
}

Tensor Linears::Backward(const Linear& linear, Tensor x, Tensor gradient, bool needs_input_gradient) {
  Tensor input_gradient = nullptr;
  if (needs_input_gradient) input_gradient = matmuls_.Backward(linear, gradient);
  if (!IsTrained(linear)) return input_gradient;
  const Module& module = adapter_->module(linear.module);
  Tensor low = matmuls_.Multiply(Factor(module.a_rows, module.in, module.rank), x);
  Tensor low_gradient = graph_.Scale(matmuls_.Multiply(Factor(module.b_columns, module.out, module.rank), gradient), adapter_->scale());
  KeepGradients(linear.module, Output(Outer(x, low_gradient)), Output(Outer(gradient, low)));
  if (!needs_input_gradient) return nullptr;
  return PlusLowRank(input_gradient, module.a_columns, module.a_rows, low_gradient);
}

Tensor Linears::PlusAdapterOf(const Linear& linear, Tensor y, Tensor x, Tensor ids) {
  if (!IsTrained(linear)) return y;
  const Module& module = adapter_->module(linear.module);
  Tensor low = graph_.MulMatOf(FactorOf(module.a_rows, module.in, module.rank, module.experts), x, ids);
  Tensor added = graph_.MulMatOf(FactorOf(module.b_rows, module.rank, module.out, module.experts), low, ids);
  return graph_.Plus(y, graph_.Scale(added, adapter_->scale()));
}

Tensor Linears::PlusAdapterBackOf(const Linear& linear, Tensor input_gradient, Tensor x, Tensor gradient, Tensor ids, Tensor shares) {
  if (!IsTrained(linear)) return input_gradient;
  const Module& module = adapter_->module(linear.module);
  const auto outer = [&](Tensor wide, Tensor low) {
    return Output(ExpertOuter(graph_, wide, shares ? graph_.Times(low, shares) : low, ids, module.experts));
  };
  Tensor low = graph_.MulMatOf(FactorOf(module.a_rows, module.in, module.rank, module.experts), x, ids);
  Tensor of_low = graph_.MulMatOf(FactorOf(module.b_columns, module.out, module.rank, module.experts), gradient, ids);
  of_low = graph_.Scale(of_low, adapter_->scale());
  Tensor of_a = outer(x, of_low);
  KeepGradients(linear.module, of_a, outer(gradient, low));
  return graph_.Plus(input_gradient, graph_.MulMatOf(FactorOf(module.a_columns, module.rank, module.in, module.experts), of_low, ids));
}

Tensor Linears::Output(Tensor tensor) {
  graph_.Pin(tensor, {gradients_, gradient_offset_});
  gradient_offset_ += Aligned(graph_.api().ggml_nbytes(tensor));
  return graph_.Add(tensor);
}

void Linears::KeepGradients(int module, Tensor a, Tensor b_transposed) {
  if (!is_cpu_) return outputs_.push_back({module, a, b_transposed});
  GradientSum* sum = graph_.Keep(GradientSum{sum_, module, gradient_scale_});
  graph_.Add(graph_.Custom(a, {}, AccumulateShare<true>, sum));
  graph_.Add(graph_.Custom(b_transposed, {}, AccumulateShare<false>, sum));
}

size_t Linears::GradientBytes(const Layer& layer, const Adapter& adapter) {
  size_t bytes = 0;
  for (Linear* linear : const_cast<Layer&>(layer).linears()) {
    if (linear->module < 0) continue;
    const Module& module = adapter.module(linear->module);
    bytes += Aligned(module.a_count() * sizeof(float)) + Aligned(module.b_count() * sizeof(float));
  }
  return bytes;
}

}  // namespace onpolicy::training
