// Linear layers with a low-rank adapter beside frozen weights: y = W x + (alpha / rank) B (A x) + bias, in the engine's order; and the way back.
#pragma once
#include "graphs/graph.h"
#include "trainer/adapter.h"
#include "weights/matmul.h"
#include "weights/weights.h"

namespace onpolicy::training {

// Where one module's gradients are written by a graph, until the host has read them.
struct GradientOutput {
  int module;
  Tensor a;             // (in, rank, experts) as ggml counts
  Tensor b_transposed;  // (out, rank, experts), over the scale
};

// What a layer's graph needs to know about the adapter; null: the adapter is off.
class Linears {
 public:
  // `gradients`: device memory for the gradients of one graph.
  Linears(Graph& graph, const Device& device, const Adapter* adapter, const Arena* gradients)
      : graph_(graph), matmuls_(graph, device), is_cpu_(device.is_cpu()), adapter_(adapter), gradients_(gradients) {}

  virtual ~Linears() = default;

  // (in, row) -> (out, row)
  Tensor Forward(const Linear& linear, Tensor x);
  // Gradient of the output -> gradient of the input, (in, row), or null when nobody needs it. Keeps the adapter's gradients.
  virtual Tensor Backward(const Linear& linear, Tensor x, Tensor gradient, bool needs_input_gradient = true);
  // x: (in, 1 or used, row), y: (out, used, row) -> y and what the adapters of each token's experts `ids`, (used, row), add
  Tensor PlusAdapterOf(const Linear& linear, Tensor y, Tensor x, Tensor ids);
  // Gradient of what they add over `shares`, (1, used, row) or null: 1. -> `input_gradient`, (in, used, row), and what they pass on, over
  // the shares as well. Keeps their gradients.
  Tensor PlusAdapterBackOf(const Linear& linear, Tensor input_gradient, Tensor x, Tensor gradient, Tensor ids, Tensor shares);
  // Told of each norm on the way back: the gradient of its output and its input. Its weight is frozen beside an adapter.
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
  // y + factor low, where `rows` and `columns` hold the factor, (size, rank), both ways round. May reuse y.
  Tensor PlusLowRank(Tensor y, Slot rows, Slot columns, Tensor low);
  // (size, row) and (rank, row) -> (size, rank), the sum over the row
  Tensor Outer(Tensor x, Tensor low);
  Tensor Output(Tensor tensor);

  Matmuls matmuls_;
  bool is_cpu_;
  const Adapter* adapter_;
  const Arena* gradients_;
  size_t gradient_offset_ = 0;
  std::vector<GradientOutput> outputs_;
};

}  // namespace onpolicy::training
