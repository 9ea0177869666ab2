#include "trainer/norms.h"

namespace onpolicy::training {

Tensor Centered(Graph& graph, Tensor x) {
  return graph.Minus(x, graph.Scale(graph.SumRows(x), 1 / static_cast<float>(x->ne[0])));
}

Tensor Normed(Graph& graph, const Shape& shape, Tensor x) {
  return shape.traits->is_norm_centered ? graph.Norm(x, shape.norm_epsilon) : graph.RmsNorm(x, shape.norm_epsilon);
}

Tensor NormedBack(Graph& graph, const Shape& shape, Tensor gradient, Tensor x) {
  if (!shape.traits->is_norm_centered) return graph.RmsNormBack(gradient, x, shape.norm_epsilon);
  return Centered(graph, graph.RmsNormBack(gradient, Centered(graph, x), shape.norm_epsilon));
}

}  // namespace onpolicy::training
