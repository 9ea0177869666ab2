#include "trainer/experts.h"

namespace onpolicy::training {

// The weights of the best experts, divided by their sum, are a softmax over those experts' scores alone. They are computed as the engine does.
Routing Experts::Route(Tensor x) {
  Tensor weights = graph_.SoftMax(matmuls_.Forward(layer_.router.weight, x), nullptr, 1.0f);
  const int64_t rows = x->ne[1];
  Routing routing;
  routing.selected = graph_.TopK(weights, shape_.experts_used);
  Tensor chosen = graph_.Rows(graph_.Reshape(weights, 1, shape_.experts, rows), routing.selected);
  chosen = graph_.Reshape(chosen, shape_.experts_used, rows);
  routing.weights = graph_.Over(chosen, graph_.SumRows(chosen));
  return routing;
}

Tensor Experts::Spread(const Linear& linear, Tensor x, const Routing& routing) {
  return matmuls_.ForwardOf(linear.weight, graph_.Reshape(x, x->ne[0], 1, x->ne[1]), routing.selected);
}

Tensor Experts::Gather(const Linear& linear, Tensor hidden, const Routing& routing) {
  return Sum(graph_.Times(matmuls_.ForwardOf(linear.weight, hidden, routing.selected), PerExpert(routing.weights)));
}

Tensor Experts::GatherBack(const Linear& linear, Tensor gradient, Tensor hidden, const Routing& routing,
                           Tensor* scores_gradient) {
  Tensor each = graph_.Reshape(gradient, gradient->ne[0], 1, gradient->ne[1]);
  Tensor unweighted = graph_.MulMatOf(Transposed(linear), each, routing.selected);
  Tensor weights_gradient =
      graph_.Reshape(graph_.SumRows(graph_.Times(hidden, unweighted)), shape_.experts_used, gradient->ne[1]);
  // As a formula: ggml's own function may write over the softmax that it still reads.
  Tensor mean = graph_.SumRows(graph_.Times(weights_gradient, routing.weights));
  *scores_gradient = graph_.Times(graph_.Minus(weights_gradient, mean), routing.weights);
  return graph_.Times(unweighted, PerExpert(routing.weights));
}

Tensor Experts::SpreadBack(Tensor gate_gradient, Tensor up_gradient, Tensor scores_gradient, const Routing& routing) {
  const int64_t used = shape_.experts_used, rows = scores_gradient->ne[1];
  Tensor parts = graph_.Plus(graph_.MulMatOf(Transposed(layer_.gate), gate_gradient, routing.selected),
                             graph_.MulMatOf(Transposed(layer_.up), up_gradient, routing.selected));
  Tensor ids = graph_.Reshape(graph_.Contiguous(routing.selected), used * rows, 1);
  Tensor directions = graph_.Reshape(graph_.Rows(layer_.router.weight, ids), shape_.width, used, rows);
  return Sum(graph_.Plus(parts, graph_.Times(directions, PerExpert(scores_gradient))));
}

Tensor Experts::Sum(Tensor parts) {
  Tensor sum = nullptr;
  for (int64_t i = 0; i < parts->ne[1]; ++i) {
    Tensor part = graph_.Part(parts, i);
    sum = sum ? graph_.Plus(sum, part) : part;
  }
  return parts->ne[1] > 1 ? sum : graph_.Contiguous(sum);
}

}  // namespace onpolicy::training
