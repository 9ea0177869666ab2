#include "trainer/linear.h"

namespace onpolicy::training {
namespace {

constexpr size_t kOutputAlignment = 256;

size_t Aligned(size_t bytes) { return (bytes + kOutputAlignment - 1) / kOutputAlignment * kOutputAlignment; }

}  // namespace

Tensor Linears::Forward(const Linear& linear, Tensor x) {
  Tensor y = graph_.MulMat(linear.weight, x);
  if (linear.bias) y = graph_.Plus(y, linear.bias);
  if (!IsTrained(linear)) return y;
  const Module& module = adapter_->module(linear.module);
  Tensor low = graph_.MulMat(Factor(module.a_rows, module.in, module.rank), x);
  return graph_.Plus(y, graph_.MulMat(Factor(module.b_rows, module.rank, module.out), low));
}

Tensor Linears::Backward(const Linear& linear, Tensor x, Tensor gradient, bool needs_input_gradient) {
  Tensor input_gradient = nullptr;
  if (needs_input_gradient)
    input_gradient = graph_.MulMat(
        graph_.At(linear.transposed, linear.transposed_type, {linear.out(), linear.in()}), gradient);
  if (!IsTrained(linear)) return input_gradient;
  const Module& module = adapter_->module(linear.module);
  Tensor low = graph_.MulMat(Factor(module.a_rows, module.in, module.rank), x);
  Tensor low_gradient = graph_.MulMat(Factor(module.b_columns, module.out, module.rank), gradient);
  outputs_.push_back({linear.module, Output(graph_.OutProd(x, low_gradient)), Output(graph_.OutProd(gradient, low))});
  if (!needs_input_gradient) return nullptr;
  return graph_.Plus(input_gradient,
                     graph_.MulMat(Factor(module.a_columns, module.rank, module.in), low_gradient));
}

Tensor Linears::Output(Tensor tensor) {
  graph_.Pin(tensor, {gradients_, gradient_offset_});
  gradient_offset_ += Aligned(graph_.api().ggml_nbytes(tensor));
  return graph_.Add(tensor);
}

size_t Linears::GradientBytes(const Layer& layer, const Adapter& adapter) {
  size_t bytes = 0;
  for (Linear* linear : const_cast<Layer&>(layer).linears()) {
    if (linear->module < 0) continue;
    const auto rank = static_cast<size_t>(adapter.rank());
    bytes += Aligned(static_cast<size_t>(linear->in()) * rank * sizeof(float)) +
             Aligned(static_cast<size_t>(linear->out()) * rank * sizeof(float));
  }
  return bytes;
}

}  // namespace onpolicy::training
