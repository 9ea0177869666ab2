// Norms of rows with a weight, and their way back. A weight of null is no norm.
#pragma once
#include "trainer/linear.h"

namespace onpolicy::training {

// x minus the mean of its numbers.
inline Tensor Centered(Graph& graph, Tensor x) {
  return graph.Minus(x, graph.Scale(graph.SumRows(x), 1 / static_cast<float>(x->ne[0])));
}

// (size, ...) -> of length 1 on average, without its mean where the model's norms are centered
inline Tensor Normed(Graph& graph, const Shape& shape, Tensor x) {
  return shape.traits->is_norm_centered ? graph.Norm(x, shape.norm_epsilon) : graph.RmsNorm(x, shape.norm_epsilon);
}

// Gradient of that -> that of x.
inline Tensor NormedBack(Graph& graph, const Shape& shape, Tensor gradient, Tensor x) {
  if (!shape.traits->is_norm_centered) return graph.RmsNormBack(gradient, x, shape.norm_epsilon);
  return Centered(graph, graph.RmsNormBack(gradient, Centered(graph, x), shape.norm_epsilon));
}

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
