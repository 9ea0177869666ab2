// Linear layers with a low-rank adapter beside frozen weights: y = W x + (alpha / rank) B (A x) + bias, in the engine's order; and their gradients.
#pragma once
#include "trainer/adapter.h"
#include "trainer/graphs/graph.h"
#include "trainer/weights/matmul.h"
#include "trainer/weights/weights.h"

namespace onpolicy::training {

// Outputs for one module's gradients in a graph on a device other than the CPU, until the host has read them.
struct GradientOutput {
  int module;
  Tensor a;             // (in, rank, experts) as ggml counts
  Tensor b_transposed;  // (out, rank, experts), over the scale
};

// Adds linear layers to a graph. If the adapter is null, it is off.
class Linears {
 public:
  // `gradients` is device memory for the gradients of one graph.
  // The gradients of a CPU's graph times `gradient_scale` are added to `sum` while it runs.
  Linears(Graph& graph, const Device& device, const Adapter* adapter, const Arena* gradients, Adapter* sum = nullptr, float gradient_scale = 1)
      : graph_(graph), matmuls_(graph, device), is_cpu_(device.is_cpu()), adapter_(adapter), gradients_(gradients), sum_(sum), gradient_scale_(gradient_scale) {}

  virtual ~Linears() = default;

  // (in, row) -> (out, row)
  Tensor Forward(const Linear& linear, Tensor x);
  // Gradient of the output -> gradient of the input, (in, row), or null if it is not needed. Keeps the adapter's gradients.
  virtual Tensor Backward(const Linear& linear, Tensor x, Tensor gradient, bool needs_input_gradient = true);
  // x: (in, 1 or used, row), y: (out, used, row) -> y plus the outputs of the adapters of each token's experts `ids`, (used, row)
  Tensor PlusAdapterOf(const Linear& linear, Tensor y, Tensor x, Tensor ids);
  // Gradient of these outputs divided by `shares`, (1, used, row) or null for 1 -> `input_gradient`, (in, used, row), plus the adapters' part of
  // it, also divided by the shares. Keeps the adapters' gradients.
  Tensor PlusAdapterBackOf(const Linear& linear, Tensor input_gradient, Tensor x, Tensor gradient, Tensor ids, Tensor shares);
  // Called for each norm in the backward pass, with the gradient of its output and its input. Beside an adapter its weight is frozen.
  virtual void NormBackward(Tensor /*weight*/, Tensor /*gradient*/, Tensor /*x*/) {}

  Matmuls& matmuls() { return matmuls_; }
  bool is_on_cpu() const { return is_cpu_; }
  const std::vector<GradientOutput>& outputs() const { return outputs_; }
  // Memory that the gradients of `layer` take.
  static size_t GradientBytes(const Layer& layer, const Adapter& adapter);

 protected:
  Graph& graph_;

 private:
  bool IsTrained(const Linear& linear) const { return adapter_ && linear.module >= 0; }
  Tensor Factor(Slot slot, int64_t rows, int64_t columns) {
    return graph_.At(slot, GGML_TYPE_F32, {rows, columns});
  }
  Tensor FactorOf(Slot slot, int64_t rows, int64_t columns, int64_t experts) {
    return graph_.At(slot, GGML_TYPE_F32, {rows, columns, experts});
  }
  // May reuse y.
  Tensor PlusAdapter(Tensor y, const Module& module, Tensor x);
  // Returns y + factor low. `rows` and `columns` are the factor, (size, rank), and its transpose. May reuse y.
  Tensor PlusLowRank(Tensor y, Slot rows, Slot columns, Tensor low);
  // (size, row) and (rank, row) -> (size, rank), the sum over the row
  Tensor Outer(Tensor x, Tensor low);
  Tensor Output(Tensor tensor);
  void KeepGradients(int module, Tensor a, Tensor b_transposed);

  Matmuls matmuls_;
  bool is_cpu_;
  const Adapter* adapter_;
  const Arena* gradients_;
  Adapter* sum_;
  float gradient_scale_;
  size_t gradient_offset_ = 0;
  std::vector<GradientOutput> outputs_;
};

}  // namespace onpolicy::training
