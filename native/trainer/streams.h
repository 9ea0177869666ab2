// Several residual streams of a token (AltUp, https://arxiv.org/abs/2301.13310). A layer predicts all streams, computes on the first, and
// corrects all by its new value. These weights are not trained.
#pragma once
#include <vector>

#include "trainer/norms.h"

namespace onpolicy::training {

// (width, row) of each stream
using StreamParts = std::vector<Tensor>;

// (streams x width, row) <-> its streams
StreamParts SplitStreams(Graph& graph, const Shape& shape, Tensor streams);
Tensor JoinStreams(Graph& graph, const StreamParts& parts);

// Returns the streams of an embedding, (width, row), before the first layer.
Tensor SpreadStreams(Graph& graph, Matmuls& matmuls, const Weights& weights, Tensor embedded);
// Streams after the last layer, (streams x width, row) -> their mean, (width, row); and the gradient back.
Tensor MergeStreams(Graph& graph, Matmuls& matmuls, const Weights& weights, Tensor streams);
Tensor MergeStreamsBack(Graph& graph, Matmuls& matmuls, const Weights& weights, Tensor gradient, Tensor streams);

class Streams {
 public:
  Streams(Graph& graph, Linears& linears, const Shape& shape, const Layer& layer)
      : graph_(graph), matmuls_(linears.matmuls()), norms_(graph, linears, shape), shape_(shape), layer_(layer) {}

  StreamParts Predict(const StreamParts& x);
  // Gradients of the predictions -> those of x.
  StreamParts PredictBack(const StreamParts& gradients, const StreamParts& x);
  // `made` is the layer's result for the first prediction.
  StreamParts Correct(const StreamParts& predictions, Tensor made);
  // Gradients of the corrected streams -> gradients of the predictions and of `made`.
  StreamParts CorrectBack(const StreamParts& gradients, const StreamParts& predictions, Tensor made, Tensor* of_made);

 private:
  // (width, row) -> (streams, row)
  Tensor Route(Tensor x);
  Tensor RouteBack(Tensor gradient, Tensor x);
  // Row `index` of (n, row), as a factor of each token
  Tensor Factor(Tensor x, int64_t index) { return graph_.Slice(x, 0, index, 1); }
  // (1, row) sums of products
  Tensor Dot(Tensor a, Tensor b) { return graph_.SumRows(graph_.Times(a, b)); }
  Tensor Corrections(Tensor made);

  Graph& graph_;
  Matmuls& matmuls_;
  Norms norms_;
  const Shape& shape_;
  const Layer& layer_;
};

}  // namespace onpolicy::training
