// Norms of rows with a weight, and their way back. A weight of null is no norm.
#pragma once
#include "trainer/linear.h"

namespace onpolicy::training {

// (size, ...) -> of length 1 on average, without its mean where the model's norms are centered
Tensor Normed(Graph& graph, const Shape& shape, Tensor x);
// Gradient of that -> that of x.
Tensor NormedBack(Graph& graph, const Shape& shape, Tensor gradient, Tensor x);

// x minus the mean of its numbers.
Tensor Centered(Graph& graph, Tensor x);

class Norms {
 public:
  Norms(Graph& graph, Linears& linears, const Shape& shape) : graph_(graph), linears_(linears), shape_(shape) {}

  Tensor Forward(Tensor x, Tensor weight) { return weight ? graph_.Times(Normed(graph_, shape_, x), weight) : x; }
  // Gradient of the norm -> that of x.
  Tensor Backward(Tensor gradient, Tensor x, Tensor weight) {
    if (!weight) return gradient;
    linears_.NormBackward(weight, gradient, x);
    return NormedBack(graph_, shape_, graph_.Times(gradient, weight), x);
  }

 private:
  Graph& graph_;
  Linears& linears_;
  const Shape& shape_;
};

}  // namespace onpolicy::training
