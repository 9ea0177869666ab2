#include "trainer/streams.h"

#include <cmath>

namespace onpolicy::training {
namespace {

// (in, out) -> (out, in)
Tensor Turned(Graph& graph, Tensor weight) {
  if (weight->type != GGML_TYPE_F32) weight = graph.Converted(weight, GGML_TYPE_F32);
  return graph.Contiguous(graph.Transpose(weight));
}

// Matrix `index` of several, (in, out, n).
Tensor MatrixAt(Graph& graph, Tensor weight, int64_t index) {
  Tensor matrix = graph.Slice(weight, 2, index, 1);
  return graph.Reshape(matrix, matrix->ne[0], matrix->ne[1]);
}

// x over its length
Tensor Direction(Graph& graph, Tensor x) { return graph.Scale(graph.RmsNorm(x, 0), 1 / std::sqrt(static_cast<float>(x->ne[0]))); }

// (1, row) lengths
Tensor LengthOf(Graph& graph, Tensor x) { return graph.SumRows(graph.Times(x, Direction(graph, x))); }

}  // namespace

StreamParts SplitStreams(Graph& graph, const Shape& shape, Tensor streams) {
  StreamParts parts;
  for (int64_t i = 0; i < shape.streams; ++i) parts.push_back(graph.Contiguous(graph.Slice(streams, 0, i * shape.width, shape.width)));
  return parts;
}

Tensor JoinStreams(Graph& graph, const StreamParts& parts) {
  Tensor all = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) all = graph.Concat(all, parts[i], 0);
  return all;
}

Tensor SpreadStreams(Graph& graph, Matmuls& matmuls, const Weights& weights, Tensor embedded) {
  StreamParts parts = {embedded};
  Tensor length = LengthOf(graph, embedded);
  for (int64_t i = 1; i < weights.shape.streams; ++i) {
    Tensor made = matmuls.Multiply(MatrixAt(graph, weights.stream_in, i - 1), embedded);
    parts.push_back(graph.Times(Direction(graph, made), length));
  }
  return JoinStreams(graph, parts);
}

Tensor MergeStreams(Graph& graph, Matmuls& matmuls, const Weights& weights, Tensor streams) {
  const StreamParts parts = SplitStreams(graph, weights.shape, streams);
  Tensor length = LengthOf(graph, parts[0]), sum = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    Tensor made = matmuls.Multiply(MatrixAt(graph, weights.stream_out, static_cast<int64_t>(i) - 1), parts[i]);
    sum = graph.Plus(sum, graph.Times(Direction(graph, made), length));
  }
  return graph.Scale(sum, 1 / static_cast<float>(parts.size()));
}

// y = |a| d with d = m / |m|, m = U x: the gradient of m is |a| / |m| (g - d (d . g)), that of a is a / |a| (d . g).
Tensor MergeStreamsBack(Graph& graph, Matmuls& matmuls, const Weights& weights, Tensor gradient, Tensor streams) {
  const StreamParts parts = SplitStreams(graph, weights.shape, streams);
  gradient = graph.Scale(gradient, 1 / static_cast<float>(parts.size()));
  Tensor length = LengthOf(graph, parts[0]), of_length = nullptr;
  StreamParts gradients = {nullptr};
  for (size_t i = 1; i < parts.size(); ++i) {
    Tensor matrix = MatrixAt(graph, weights.stream_out, static_cast<int64_t>(i) - 1);
    Tensor made = matmuls.Multiply(matrix, parts[i]), direction = Direction(graph, made);
    Tensor along = graph.SumRows(graph.Times(gradient, direction));
    of_length = of_length ? graph.Plus(of_length, along) : along;
    Tensor across = graph.Minus(gradient, graph.Times(direction, along));
    Tensor of_made = graph.Times(across, graph.Over(length, LengthOf(graph, made)));
    gradients.push_back(matmuls.Multiply(Turned(graph, matrix), of_made));
  }
  gradients[0] = graph.Plus(gradient, graph.Times(Direction(graph, parts[0]), of_length));
  return JoinStreams(graph, gradients);
}

Tensor Streams::Route(Tensor x) {
  Tensor normed = graph_.Scale(norms_.Forward(x, layer_.stream_norm), 1 / static_cast<float>(shape_.width));
  return graph_.Tanh(matmuls_.Multiply(layer_.stream_router, normed));
}

Tensor Streams::RouteBack(Tensor gradient, Tensor x) {
  Tensor slope = graph_.Scale(graph_.Square(Route(x)), -1, 1);
  Tensor of_normed = matmuls_.Multiply(Turned(graph_, layer_.stream_router), graph_.Times(gradient, slope));
  return norms_.Backward(graph_.Scale(of_normed, 1 / static_cast<float>(shape_.width)), x, layer_.stream_norm);
}

// Prediction i is x_i + the sum over j of c_(i, j) x_j.
StreamParts Streams::Predict(const StreamParts& x) {
  const int64_t count = shape_.streams;
  Tensor factors = matmuls_.Multiply(layer_.stream_prediction, Route(x[0]));
  StreamParts predictions;
  for (int64_t i = 0; i < count; ++i) {
    Tensor sum = nullptr;
    for (int64_t j = 0; j < count; ++j) {
      Tensor part = graph_.Times(x[static_cast<size_t>(j)], Factor(factors, i * count + j));
      sum = sum ? graph_.Plus(sum, part) : part;
    }
    predictions.push_back(graph_.Plus(sum, x[static_cast<size_t>(i)]));
  }
  return predictions;
}

StreamParts Streams::PredictBack(const StreamParts& gradients, const StreamParts& x) {
  const int64_t count = shape_.streams;
  Tensor factors = matmuls_.Multiply(layer_.stream_prediction, Route(x[0])), of_factors = nullptr;
  StreamParts result = gradients;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < count; ++j) {
      Tensor gradient = gradients[static_cast<size_t>(i)], &sum = result[static_cast<size_t>(j)];
      sum = graph_.Plus(sum, graph_.Times(gradient, Factor(factors, i * count + j)));
      Tensor of_factor = Dot(gradient, x[static_cast<size_t>(j)]);
      of_factors = of_factors ? graph_.Concat(of_factors, of_factor, 0) : of_factor;
    }
  Tensor of_route = matmuls_.Multiply(Turned(graph_, layer_.stream_prediction), of_factors);
  result[0] = graph_.Plus(result[0], RouteBack(of_route, x[0]));
  return result;
}

Tensor Streams::Corrections(Tensor made) {
  return graph_.Scale(matmuls_.Multiply(layer_.stream_correction, Route(made)), 1, 1);
}

StreamParts Streams::Correct(const StreamParts& predictions, Tensor made) {
  Tensor factors = Corrections(made), news = graph_.Minus(made, predictions[0]);
  StreamParts corrected;
  for (size_t i = 0; i < predictions.size(); ++i)
    corrected.push_back(graph_.Plus(graph_.Times(news, Factor(factors, static_cast<int64_t>(i))), predictions[i]));
  return corrected;
}

StreamParts Streams::CorrectBack(const StreamParts& gradients, const StreamParts& predictions, Tensor made, Tensor* of_made) {
  Tensor factors = Corrections(made), news = graph_.Minus(made, predictions[0]);
  Tensor of_news = nullptr, of_factors = nullptr;
  for (size_t i = 0; i < gradients.size(); ++i) {
    Tensor part = graph_.Times(gradients[i], Factor(factors, static_cast<int64_t>(i))), of_factor = Dot(gradients[i], news);
    of_news = of_news ? graph_.Plus(of_news, part) : part;
    of_factors = of_factors ? graph_.Concat(of_factors, of_factor, 0) : of_factor;
  }
  Tensor of_route = matmuls_.Multiply(Turned(graph_, layer_.stream_correction), of_factors);
  *of_made = graph_.Plus(of_news, RouteBack(of_route, made));
  StreamParts result = gradients;
  result[0] = graph_.Minus(gradients[0], of_news);
  return result;
}

}  // namespace onpolicy::training
