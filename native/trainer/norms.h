// Norms of rows with a weight, and their gradients. A null weight means that there is no norm.
#pragma once
#include "trainer/linear.h"

namespace onpolicy::training {

// Returns x minus the mean of its numbers.
inline Tensor Centered(Graph& graph, Tensor x) {
  return graph.Minus(x, graph.Scale(graph.SumRows(x), 1 / static_cast<float>(x->ne[0])));
}

// (size, ...) -> numbers with mean square 1, centered if the model's norms are
inline Tensor Normed(Graph& graph, const Shape& shape, Tensor x) {
  return shape.traits->is_norm_centered ? graph.Norm(x, shape.norm_epsilon) : graph.RmsNorm(x, shape.norm_epsilon);
}

// Gradient of the normed numbers -> gradient of x.
inline Tensor NormedBack(Graph& graph, const Shape& shape, Tensor gradient, Tensor x) {
  if (!shape.traits->is_norm_centered) return graph.RmsNormBack(gradient, x, shape.norm_epsilon);
  return Centered(graph, graph.RmsNormBack(gradient, Centered(graph, x), shape.norm_epsilon));
}

class Norms {
 public:
  Norms(Graph& graph, Linears& linears, const Shape& shape) : graph_(graph), linears_(linears), shape_(shape) {}

  Tensor Forward(Tensor x, Tensor weight) { return weight ? graph_.Times(Normed(graph_, shape_, x), weight) : x; }
  // Gradient of the norm -> gradient of x.
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
