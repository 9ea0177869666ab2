// Tokens, a router and matrices of experts -> the weighted sum of the outputs of each token's experts, and its gradient. The router is not trained.
#pragma once
#include "trainer/graphs/graph.h"
#include "trainer/linear.h"

namespace onpolicy::training {

// The experts of the tokens of a row.
struct Routing {
  Tensor selected = nullptr;  // (used, row) int32
  Tensor shares = nullptr;    // (used, row): weights over the selected experts, whose sum is 1
  Tensor slopes = nullptr;    // (used, row): 1 - s of the logistic function s of a score, or null
};

class Experts {
 public:
  Experts(Graph& graph, Linears& linears, const Shape& shape, const Layer& layer)
      : graph_(graph), linears_(linears), matmuls_(linears.matmuls()), shape_(shape), layer_(layer) {}

  // x: (width, row); given: (used, row) experts that replace the router's choice if they are not below 0, or null.
  // The weights of the best experts, divided by their sum, are a softmax over those experts' scores alone. They are computed as the engine does.
  Routing Route(Tensor x, Tensor given) {
    Tensor scores = matmuls_.Forward(layer_.router.weight, x);
    if (layer_.router.bias) scores = graph_.Plus(scores, layer_.router.bias);
    const int64_t rows = x->ne[1];
    const auto chosen = [&](Tensor of, Tensor selected) {
      return graph_.Reshape(graph_.Rows(graph_.Reshape(of, 1, shape_.experts, rows), selected), shape_.experts_used, rows);
    };
    Routing routing;
    if (shape_.routing == RoutingKind::kBestScores) {
      routing.selected = Choose(scores, given);
      routing.shares = graph_.SoftMax(chosen(scores, routing.selected), nullptr, 1.0f);
      return routing;
    }
    const bool is_logistic = shape_.routing == RoutingKind::kLogistic;
    Tensor weights = is_logistic ? graph_.Sigmoid(scores) : graph_.SoftMax(scores, nullptr, 1.0f);
    Tensor preferred = layer_.router_preference ? graph_.Plus(weights, layer_.router_preference) : weights;
    routing.selected = Choose(preferred, given);
    Tensor best = chosen(weights, routing.selected);
    routing.shares = graph_.Over(best, graph_.SumRows(best));
    if (is_logistic) routing.slopes = graph_.Scale(best, -1, 1);
    return routing;
  }

  // (in, row) -> (hidden, used, row), a matmul with each of the token's experts
  Tensor Spread(const Linear& linear, Tensor x, const Routing& routing) {
    return Matmul(linear, graph_.Reshape(x, x->ne[0], 1, x->ne[1]), routing);
  }

  // (hidden, used, row) -> (width, row), the weighted sum of the experts' outputs
  Tensor Gather(const Linear& linear, Tensor hidden, const Routing& routing) {
    return Sum(graph_.Times(Matmul(linear, hidden, routing), WeightsOf(routing)));
  }

  // Gradient of the sum, (width, row) -> gradient of `hidden`. Fills the gradient of the router's scores, (used, row).
  Tensor GatherBack(const Linear& linear, Tensor gradient, Tensor hidden, const Routing& routing,
                    Tensor* scores_gradient) {
    Tensor each = graph_.Reshape(gradient, gradient->ne[0], 1, gradient->ne[1]);
    Tensor unweighted = matmuls_.BackwardOf(linear, each, routing.selected);
    if (linear.scale) unweighted = graph_.Times(unweighted, ScalesOf(linear, routing));
    unweighted = linears_.PlusAdapterBackOf(linear, unweighted, hidden, each, routing.selected, WeightsOf(routing));
    Tensor weights_gradient = graph_.SumRows(graph_.Times(hidden, unweighted));
    if (linear.bias) {
      Tensor biases = graph_.Reshape(RowsOfSelected(linear.bias, routing), linear.out(), shape_.experts_used, gradient->ne[1]);
      weights_gradient = graph_.Plus(weights_gradient, graph_.SumRows(graph_.Times(biases, each)));
    }
    weights_gradient = graph_.Reshape(weights_gradient, shape_.experts_used, gradient->ne[1]);
    // A formula is used because ggml's function may overwrite the softmax that it still reads.
    Tensor mean = graph_.SumRows(graph_.Times(weights_gradient, routing.shares));
    *scores_gradient = graph_.Times(graph_.Minus(weights_gradient, mean), routing.shares);
    if (routing.slopes) *scores_gradient = graph_.Times(*scores_gradient, routing.slopes);
    if (shape_.expert_scale != 1) *scores_gradient = graph_.Scale(*scores_gradient, shape_.expert_scale);
    return graph_.Times(unweighted, WeightsOf(routing));
  }

  // Gradients of both matmuls by experts, (hidden, used, row) -> the part of each expert in the gradient of x, (width, used, row). x: (width, row)
  Tensor SpreadBack(Tensor gate_gradient, Tensor up_gradient, Tensor x, const Routing& routing) {
    x = graph_.Reshape(x, x->ne[0], 1, x->ne[1]);
    if (layer_.gate_up.weight) return MatmulBack(layer_.gate_up, graph_.Concat(gate_gradient, up_gradient, 0), x, routing);
    return graph_.Plus(MatmulBack(layer_.gate, gate_gradient, x, routing), MatmulBack(layer_.up, up_gradient, x, routing));
  }

  // Gradient of the scores -> the part of each expert in the gradient of the router's input, (width, used, row)
  Tensor RouteBack(Tensor scores_gradient, const Routing& routing) {
    Tensor directions = graph_.Reshape(RowsOfSelected(layer_.router.weight, routing), shape_.width, shape_.experts_used, scores_gradient->ne[1]);
    return graph_.Times(directions, PerExpert(scores_gradient));
  }

  // (width, used, row) -> (width, row)
  Tensor Sum(Tensor parts) {
    Tensor sum = nullptr;
    for (int64_t i = 0; i < parts->ne[1]; ++i) {
      Tensor part = graph_.Part(parts, i);
      sum = sum ? graph_.Plus(sum, part) : part;
    }
    return parts->ne[1] > 1 ? sum : graph_.Contiguous(sum);
  }

 private:
  // (experts, row) -> (used, row), as a formula of floats, which represent these numbers exactly, because ggml has no such function of integers.
  Tensor Choose(Tensor preferences, Tensor given) {
    Tensor own = graph_.TopK(preferences, shape_.experts_used);
    if (!given) return own;
    Tensor numbers = graph_.Converted(own, GGML_TYPE_F32), is_given = graph_.Step(graph_.Scale(given, 1, 0.5f));
    return graph_.Converted(graph_.Plus(numbers, graph_.Times(is_given, graph_.Minus(given, numbers))), GGML_TYPE_I32);
  }

  // (1, used, row)
  Tensor WeightsOf(const Routing& routing) {
    return PerExpert(shape_.expert_scale == 1 ? routing.shares : graph_.Scale(routing.shares, shape_.expert_scale));
  }

  // x: (in, 1 or used, row) -> (out, used, row)
  Tensor Matmul(const Linear& linear, Tensor x, const Routing& routing) {
    Tensor y = matmuls_.ForwardOf(linear.weight, x, routing.selected);
    if (linear.scale) y = graph_.Times(y, ScalesOf(linear, routing));
    y = linears_.PlusAdapterOf(linear, y, x, routing.selected);
    return linear.bias ? graph_.PlusOf(y, linear.bias, routing.selected) : y;
  }

  // Gradient of a matmul by experts -> the part of each expert in the gradient of x, (in, used, row)
  Tensor MatmulBack(const Linear& linear, Tensor gradient, Tensor x, const Routing& routing) {
    Tensor scaled = linear.scale ? graph_.Times(gradient, ScalesOf(linear, routing)) : gradient;
    return linears_.PlusAdapterBackOf(linear, matmuls_.BackwardOf(linear, scaled, routing.selected), x, gradient, routing.selected, nullptr);
  }

  // (size, experts) -> (size, used x row), the row of each selected expert
  Tensor RowsOfSelected(Tensor table, const Routing& routing) {
    Tensor ids = graph_.Contiguous(routing.selected);
    return graph_.Rows(table, graph_.Reshape(ids, ids->ne[0] * ids->ne[1], 1));
  }

  // (1, used, row)
  Tensor ScalesOf(const Linear& linear, const Routing& routing) {
    Tensor table = graph_.Reshape(linear.scale, 1, linear.experts());
    return graph_.Reshape(RowsOfSelected(table, routing), 1, shape_.experts_used, routing.selected->ne[1]);
  }

  // (used, row) -> (1, used, row)
  Tensor PerExpert(Tensor x) { return graph_.Reshape(x, 1, x->ne[0], x->ne[1]); }

  Graph& graph_;
  Linears& linears_;
  Matmuls& matmuls_;
  const Shape& shape_;
  const Layer& layer_;
};

}  // namespace onpolicy::training
