// Tokens, a router and matrices of experts -> the sum of what each token's experts say, and the way back. Its router is not trained.
#pragma once
#include "graphs/graph.h"
#include "trainer/linear.h"

namespace onpolicy::training {

// Which experts the tokens of a row take.
struct Routing {
  Tensor selected = nullptr;  // (used, row) int32
  Tensor shares = nullptr;    // (used, row): weights over the selected experts, whose sum is 1
  Tensor slopes = nullptr;    // (used, row): 1 - s of the logistic function s of a score, or null
};

class Experts {
 public:
  Experts(Graph& graph, Linears& linears, const Shape& shape, const Layer& layer)
      : graph_(graph), linears_(linears), matmuls_(linears.matmuls()), shape_(shape), layer_(layer) {}

  // x: (width, row); given: (used, row) experts that take the place of those that the router prefers, where they are not below 0; or null.
  Routing Route(Tensor x, Tensor given);
  // (in, row) -> (hidden, used, row), a matmul with each of the token's experts
  Tensor Spread(const Linear& linear, Tensor x, const Routing& routing);
  // (hidden, used, row) -> (width, row), the weighted sum of the experts' outputs
  Tensor Gather(const Linear& linear, Tensor hidden, const Routing& routing);

  // Gradient of the sum, (width, row) -> gradient of `hidden`. Fills the gradient of the router's scores, (used, row).
  Tensor GatherBack(const Linear& linear, Tensor gradient, Tensor hidden, const Routing& routing, Tensor* scores_gradient);
  // Gradients of both matmuls that were spread, (hidden, used, row), of x, (width, row) -> what each adds to that of x, (width, used, row)
  Tensor SpreadBack(Tensor gate_gradient, Tensor up_gradient, Tensor x, const Routing& routing);
  // Gradient of the scores -> what each adds to the gradient of what the router reads, (width, used, row)
  Tensor RouteBack(Tensor scores_gradient, const Routing& routing);
  // (width, used, row) -> (width, row)
  Tensor Sum(Tensor parts);

 private:
  // (experts, row) -> (used, row)
  Tensor Choose(Tensor preferences, Tensor given);
  // (1, used, row)
  Tensor WeightsOf(const Routing& routing);
  // x: (in, 1 or used, row) -> (out, used, row)
  Tensor Matmul(const Linear& linear, Tensor x, const Routing& routing);
  // Gradient of a matmul that was spread -> what each expert adds to that of x, (in, used, row)
  Tensor MatmulBack(const Linear& linear, Tensor gradient, Tensor x, const Routing& routing);
  // (size, experts) -> (size, used x row), the row of each selected expert
  Tensor RowsOfSelected(Tensor table, const Routing& routing);
  // (1, used, row)
  Tensor ScalesOf(const Linear& linear, const Routing& routing);
  // (used, row) -> (1, used, row)
  Tensor PerExpert(Tensor x) { return graph_.Reshape(x, 1, x->ne[0], x->ne[1]); }

  Graph& graph_;
  Linears& linears_;
  Matmuls& matmuls_;
  const Shape& shape_;
  const Layer& layer_;
};

}  // namespace onpolicy::training
