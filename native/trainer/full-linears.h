// Linear layers and norms with trained weights: the backward pass also adds to the weights' gradients.
#pragma once
#include <unordered_map>

#include "trainer/full-weights.h"
#include "trainer/linear.h"

namespace onpolicy::training {

class FullLinears : public Linears {
 public:
  FullLinears(Graph& graph, const Device& device, const FullWeights& weights, float norm_epsilon)
      : Linears(graph, device, nullptr, nullptr), weights_(weights), norm_epsilon_(norm_epsilon) {}

  Tensor Backward(const Linear& linear, Tensor x, Tensor gradient, bool needs_input_gradient = true) override;
  void NormBackward(Tensor weight, Tensor gradient, Tensor x) override;

 private:
  // (size, row) -> (row, size), of the type that matmuls read.
  Tensor Transposed(Tensor x, bool is_narrow);

  const FullWeights& weights_;
  float norm_epsilon_;
  std::unordered_map<Tensor, Tensor> transposed_inputs_;  // layers that share an input share its transposed copy
};

}  // namespace onpolicy::training
