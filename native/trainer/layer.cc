#include "trainer/layer.h"

#include <cmath>

namespace onpolicy::training {
namespace {

constexpr float kClampedSlope = 1.702f, kClampLimit = 7;
// 95 % of normally distributed numbers are below the mean plus this many standard deviations.
constexpr float kSparseCut = 1.6448533535003662f;

}  // namespace

LayerGraph::LayerGraph(Graph& graph, Linears& linears, const Weights& weights, const Layer& layer,
                       const RowInputs& row)
    : graph_(graph),
      linears_(linears),
      weights_(weights),
      layer_(layer),
      row_(row),
      norms_(graph, linears, weights.shape),
      experts_(graph, linears, weights.shape, layer),
      streams_(graph, linears, weights.shape, layer) {
  const MixerParts parts{graph, linears, weights, layer, row};
  mixer_ = layer.shape.mixer == MixerKind::kDeltaNet      ? NewDeltaNet(parts)
           : layer.shape.mixer == MixerKind::kConvolution ? NewConvolution(parts)
                                                           : NewAttention(parts);
}

Tensor LayerGraph::Branch(Tensor x, Tensor post_norm) {
  const float scale = weights_.shape.residual_scale;
  if (post_norm) x = norms_.Forward(x, post_norm);
  return scale == 1 ? x : graph_.Scale(x, scale);
}

template <typename Compute>
Tensor LayerGraph::BranchBack(Tensor gradient, Tensor post_norm, Compute x) {
  const float scale = weights_.shape.residual_scale;
  if (scale != 1) gradient = graph_.Scale(gradient, scale);
  return post_norm ? norms_.Backward(gradient, x(), post_norm) : gradient;
}

void LayerGraph::Begin(Tensor x) {
  input_ = x;
  if (weights_.shape.streams == 1) return;
  given_ = SplitStreams(graph_, weights_.shape, x);
  predictions_ = streams_.Predict(given_);
  input_ = predictions_[0];
}

void LayerGraph::Mix(Tensor x, Activations& kept) {
  Begin(x);
  Tensor normed = norms_.Forward(input_, layer_.attention_norm);
  for (const Linear* linear : layer_.mixer_inputs()) kept.inputs.push_back(linears_.Forward(*linear, normed));
  mixer_->Forward(kept.inputs, kept.mixed);
}

Tensor LayerGraph::MixerOutput(const Activations& kept) {
  return linears_.Forward(layer_.output, mixer_->Output(kept.inputs, kept.mixed));
}

Tensor LayerGraph::Middle(const Activations& kept) {
  Tensor sum = graph_.Plus(input_, Branch(MixerOutput(kept), layer_.attention_post_norm));
  if (!layer_.laurel_left.weight) return sum;
  return graph_.Scale(graph_.Plus(sum, Laurel(norms_.Forward(input_, layer_.attention_norm))), std::sqrt(0.5f));
}

Tensor LayerGraph::Laurel(Tensor normed) {
  Tensor low = linears_.Forward(layer_.laurel_left, normed);
  return graph_.Plus(norms_.Forward(linears_.Forward(layer_.laurel_right, low), layer_.laurel_norm), normed);
}

Tensor LayerGraph::LaurelBack(Tensor gradient, Tensor normed) {
  Tensor low = linears_.Forward(layer_.laurel_left, normed);
  Tensor of_right = norms_.Backward(gradient, linears_.Forward(layer_.laurel_right, low), layer_.laurel_norm);
  return graph_.Plus(linears_.Backward(layer_.laurel_left, normed, linears_.Backward(layer_.laurel_right, low, of_right)), gradient);
}

Tensor LayerGraph::FeedForwardInput(const Activations& kept) {
  return weights_.shape.traits->is_parallel ? norms_.Forward(input_, layer_.attention_norm) : norms_.Forward(kept.middle, layer_.ffn_norm);
}

Tensor LayerGraph::ExpertInput(const Activations& kept) {
  return layer_.expert_norm ? norms_.Forward(kept.middle, layer_.expert_norm) : FeedForwardInput(kept);
}

Tensor LayerGraph::RouterInput(const Activations& kept) {
  if (!layer_.router_scale) return ExpertInput(kept);
  const float scale = 1 / std::sqrt(static_cast<float>(weights_.shape.width));
  return graph_.Times(graph_.Scale(Normed(graph_, weights_.shape, kept.middle), scale), layer_.router_scale);
}

Tensor LayerGraph::RouterInputBack(Tensor gradient, const Activations& kept) {
  const float scale = 1 / std::sqrt(static_cast<float>(weights_.shape.width));
  return NormedBack(graph_, weights_.shape, graph_.Scale(graph_.Times(gradient, layer_.router_scale), scale), kept.middle);
}

void LayerGraph::FeedForward(Activations& kept) {
  Tensor input = has_experts() ? ExpertInput(kept) : FeedForwardInput(kept);
  const auto made = [&](const Linear& linear) {
    return has_experts() ? experts_.Spread(linear, input, RoutingOf(kept)) : linears_.Forward(linear, input);
  };
  const auto flat = [&](Tensor x) {
    return has_experts() ? graph_.Reshape(x, layer_.hidden_width(weights_.shape), row_.size) : x;
  };
  if (!layer_.gate_up.weight) {
    kept.gate = flat(made(layer_.gate));
    kept.up = flat(made(layer_.up));
    return;
  }
  Tensor both = made(layer_.gate_up);
  const int64_t hidden = layer_.down.in();
  kept.gate = flat(Share(both, 0, hidden));
  kept.up = flat(Share(both, hidden, hidden));
}

const Routing& LayerGraph::RoutingOf(const Activations& kept) {
  if (!routing_.selected) routing_ = experts_.Route(RouterInput(kept), row_.is_routed ? GivenExperts() : nullptr);
  return routing_;
}

Tensor LayerGraph::GivenExperts() {
  const Shape& shape = weights_.shape;
  Tensor all = graph_.At(row_.experts, GGML_TYPE_F32, {shape.experts_used, shape.expert_layers(), row_.size});
  return graph_.Contiguous(graph_.Part(all, layer_.index - shape.dense_layers));
}

Tensor LayerGraph::PerExpert(Tensor x) {
  return has_experts() ? graph_.Reshape(x, layer_.down.in(), weights_.shape.experts_used, row_.size) : x;
}

Tensor LayerGraph::Sparse(Tensor gate) {
  const auto count = static_cast<float>(gate->ne[0]);
  Tensor centered = Centered(graph_, gate);
  // The length of the centered numbers divided by the square root of their number minus 1.
  Tensor deviation = graph_.SumRows(graph_.Times(centered, graph_.RmsNorm(centered, 0)));
  return graph_.Relu(graph_.Minus(centered, graph_.Scale(deviation, kSparseCut / std::sqrt(count * (count - 1)))));
}

Tensor LayerGraph::SparseBack(Tensor gradient, Tensor gate) {
  const auto count = static_cast<float>(gate->ne[0]);
  Tensor of_cut = graph_.Times(gradient, graph_.Step(Sparse(gate)));
  Tensor of_deviation = graph_.Scale(graph_.SumRows(of_cut), kSparseCut / std::sqrt(count * (count - 1)));
  return Centered(graph_, graph_.Minus(of_cut, graph_.Times(graph_.RmsNorm(Centered(graph_, gate), 0), of_deviation)));
}

Tensor LayerGraph::Hidden(const Pair& given) {
  const Pair x = {is_sparse() ? Sparse(given.gate) : given.gate, given.up};
  switch (weights_.shape.activation) {
    case Activation::kSilu:
      return graph_.SwiGlu(x.gate, x.up);
    case Activation::kGelu:
      return graph_.GeGlu(x.gate, x.up);
    case Activation::kExactGelu:
      return graph_.Times(graph_.Times(x.gate, GeluOf(x.gate).share), x.up);
    default:
      return graph_.SwiGluClamped(x.gate, x.up, kClampedSlope, kClampLimit);
  }
}

// gelu(x) = x (1 + t) / 2 with t = tanh(c x (1 + a x^2)), Hendrycks and Gimpel, https://arxiv.org/abs/1606.08415
LayerGraph::Gelu LayerGraph::GeluOf(Tensor x) {
  constexpr float kA = 0.044715f, kC = 0.79788456f;  // sqrt(2 / pi)
  Tensor square = graph_.Square(x);
  Tensor t = graph_.Tanh(graph_.Times(x, graph_.Scale(square, kC * kA, kC)));
  Tensor share = graph_.Scale(t, 0.5f, 0.5f);
  Tensor slope = graph_.Times(graph_.Scale(graph_.Square(t), -0.5f, 0.5f), graph_.Scale(square, 3 * kC * kA, kC));
  return {share, graph_.Plus(share, graph_.Times(x, slope))};
}

Tensor LayerGraph::FeedForwardOutput(Tensor hidden, const Activations& kept) {
  if (!has_experts()) return linears_.Forward(layer_.down, hidden);
  Tensor sum = norms_.Forward(ExpertOutput(hidden, kept), layer_.expert_post_norm);
  if (!layer_.shared_down.weight) return sum;
  return graph_.Plus(sum, norms_.Forward(SharedOutput(FeedForwardInput(kept)), layer_.shared_post_norm));
}

Tensor LayerGraph::ExpertOutput(Tensor hidden, const Activations& kept) {
  return experts_.Gather(layer_.down, PerExpert(hidden), RoutingOf(kept));
}

Tensor LayerGraph::Output(const Activations& kept) {
  Tensor made = FeedForwardStream(kept);
  return predictions_.empty() ? OwnInputOutput(made) : StreamsOutput(made);
}

Tensor LayerGraph::StreamsOutput(Tensor made) {
  StreamParts corrected = streams_.Correct(predictions_, made);
  Tensor added = OwnInputPart(graph_.Times(corrected[0], layer_.stream_scale));
  for (size_t i = 1; i < corrected.size(); ++i) corrected[i] = graph_.Plus(corrected[i], added);
  return JoinStreams(graph_, corrected);
}

Tensor LayerGraph::StreamsBack(Tensor gradient, Tensor made) {
  StreamParts gradients = SplitStreams(graph_, weights_.shape, gradient);
  Tensor of_added = nullptr, of_made = nullptr;
  for (size_t i = 1; i < gradients.size(); ++i) of_added = of_added ? graph_.Plus(of_added, gradients[i]) : gradients[i];
  Tensor scaled = graph_.Times(streams_.Correct(predictions_, made)[0], layer_.stream_scale);
  gradients[0] = graph_.Plus(gradients[0], graph_.Times(OwnInputPartBack(of_added, scaled), layer_.stream_scale));
  of_predictions_ = streams_.CorrectBack(gradients, predictions_, made, &of_made);
  return of_made;
}

Tensor LayerGraph::OwnInput() {
  const Shape& shape = weights_.shape;
  Tensor all = graph_.At(row_.own_inputs, GGML_TYPE_F32, {shape.input_width, shape.layers, row_.size});
  return graph_.Contiguous(graph_.Part(all, layer_.index));
}

Tensor LayerGraph::Activated(Tensor x) {
  return weights_.shape.activation == Activation::kGelu ? graph_.Gelu(x) : graph_.Times(x, GeluOf(x).share);
}

Tensor LayerGraph::OwnInputPart(Tensor x) {
  Tensor gated = graph_.Times(Activated(linears_.Forward(layer_.input_gate, x)), OwnInput());
  return norms_.Forward(linears_.Forward(layer_.input_output, gated), layer_.input_norm);
}

Tensor LayerGraph::OwnInputPartBack(Tensor gradient, Tensor x) {
  Tensor gate = linears_.Forward(layer_.input_gate, x), input = OwnInput();
  Tensor gated = graph_.Times(Activated(gate), input);
  Tensor of_output = norms_.Backward(gradient, linears_.Forward(layer_.input_output, gated), layer_.input_norm);
  Tensor of_gated = graph_.Times(linears_.Backward(layer_.input_output, gated, of_output), input);
  return linears_.Backward(layer_.input_gate, x, graph_.Times(of_gated, GeluOf(gate).derivative));
}

Tensor LayerGraph::OwnInputOutput(Tensor x) {
  if (layer_.input_gate.weight) x = graph_.Plus(x, OwnInputPart(x));
  return layer_.output_scale ? graph_.Times(x, layer_.output_scale) : x;
}

Tensor LayerGraph::OwnInputBack(Tensor gradient, Tensor x) {
  if (layer_.output_scale) gradient = graph_.Times(gradient, layer_.output_scale);
  return layer_.input_gate.weight ? graph_.Plus(gradient, OwnInputPartBack(gradient, x)) : gradient;
}

Tensor LayerGraph::FeedForwardStream(const Activations& kept) {
  return graph_.Plus(kept.middle, Branch(FeedForwardOutput(Hidden({kept.gate, kept.up}), kept), layer_.ffn_post_norm));
}

LayerGraph::Pair LayerGraph::SharedParts(Tensor input) {
  return {linears_.Forward(layer_.shared_gate, input), linears_.Forward(layer_.shared_up, input)};
}

Tensor LayerGraph::SharedOutput(Tensor input) {
  Tensor output = linears_.Forward(layer_.shared_down, Hidden(SharedParts(input)));
  return layer_.shared_weight ? graph_.Times(output, graph_.Sigmoid(SharedScore(input))) : output;
}

Tensor LayerGraph::SharedBack(Tensor gradient, Tensor input) {
  const Pair parts = SharedParts(input);
  Tensor hidden = Hidden(parts), of_score = nullptr;
  if (layer_.shared_weight) {
    Tensor share = graph_.Sigmoid(SharedScore(input));
    Tensor of_share = graph_.SumRows(graph_.Times(gradient, linears_.Forward(layer_.shared_down, hidden)));
    of_score = graph_.Times(of_share, graph_.Minus(share, graph_.Square(share)));
    gradient = graph_.Times(gradient, share);
  }
  const auto [gate, up] = HiddenBack(linears_.Backward(layer_.shared_down, hidden, gradient), parts);
  Tensor sum = graph_.Plus(linears_.Backward(layer_.shared_gate, input, gate), linears_.Backward(layer_.shared_up, input, up));
  if (!of_score) return sum;
  Tensor direction = graph_.Reshape(layer_.shared_weight, weights_.shape.width, 1);
  return graph_.Plus(sum, graph_.OutProd(direction, graph_.Reshape(of_score, row_.size, 1)));
}

Tensor LayerGraph::SharedScore(Tensor input) {
  return linears_.matmuls().Forward(graph_.Reshape(layer_.shared_weight, weights_.shape.width, 1), input);
}

LayerGraph::Pair LayerGraph::HiddenBack(Tensor gradient, const Pair& given) {
  if (!is_sparse()) return ActivationBack(gradient, given);
  const Pair gradients = ActivationBack(gradient, {Sparse(given.gate), given.up});
  return {SparseBack(gradients.gate, given.gate), gradients.up};
}

LayerGraph::Pair LayerGraph::ActivationBack(Tensor gradient, const Pair& x) {
  Tensor of_activation = graph_.Times(gradient, x.up);
  if (weights_.shape.activation == Activation::kSilu)
    return {graph_.SiluBack(of_activation, x.gate), graph_.Times(gradient, graph_.Silu(x.gate))};
  if (weights_.shape.activation == Activation::kClampedSilu) return ClampedBack(gradient, x);
  const Gelu gelu = GeluOf(x.gate);
  return {graph_.Times(of_activation, gelu.derivative), graph_.Times(gradient, graph_.Times(x.gate, gelu.share))};
}

// h = x s (y + 1) with s the logistic function of slope x; dh/dx = (y + 1) s (1 + slope x (1 - s)), if nothing was clamped.
LayerGraph::Pair LayerGraph::ClampedBack(Tensor gradient, const Pair& given) {
  Tensor x = graph_.Clamp(graph_.Contiguous(given.gate), -INFINITY, kClampLimit);
  Tensor y = graph_.Clamp(graph_.Contiguous(given.up), -kClampLimit, kClampLimit);
  Tensor share = graph_.Sigmoid(graph_.Scale(x, kClampedSlope));
  Tensor derivative = graph_.Times(share, graph_.Scale(graph_.Times(graph_.Scale(x, kClampedSlope), graph_.Scale(share, -1, 1)), 1, 1));
  Tensor is_gate_free = graph_.Step(graph_.Scale(given.gate, -1, kClampLimit));
  Tensor is_up_free = graph_.Step(graph_.Scale(graph_.Square(given.up), -1, kClampLimit * kClampLimit));
  return {graph_.Times(graph_.Times(graph_.Times(gradient, graph_.Scale(y, 1, 1)), derivative), is_gate_free),
          graph_.Times(graph_.Times(gradient, graph_.Times(x, share)), is_up_free)};
}

Tensor LayerGraph::FeedForwardBack(Tensor gradient, Tensor hidden, const Activations& kept) {
  if (has_experts()) return ExpertsBack(gradient, hidden, kept);
  Tensor input = FeedForwardInput(kept);
  auto [gate, up] = HiddenBack(linears_.Backward(layer_.down, hidden, gradient), {kept.gate, kept.up});
  if (layer_.gate_up.weight) return InputBack(linears_.Backward(layer_.gate_up, input, graph_.Concat(gate, up, 0)), kept);
  return InputBack(graph_.Plus(linears_.Backward(layer_.gate, input, gate), linears_.Backward(layer_.up, input, up)), kept);
}

Tensor LayerGraph::InputBack(Tensor gradient, const Activations& kept) {
  return weights_.shape.traits->is_parallel ? gradient : norms_.Backward(gradient, kept.middle, layer_.ffn_norm);
}

Tensor LayerGraph::ExpertsBack(Tensor gradient, Tensor hidden, const Activations& kept) {
  const Routing& routing = RoutingOf(kept);
  const auto normed_back = [&](Tensor norm, auto x) { return norm ? norms_.Backward(gradient, x(), norm) : gradient; };
  Tensor of_sum = normed_back(layer_.expert_post_norm, [&] { return ExpertOutput(hidden, kept); });
  Tensor scores_gradient = nullptr;
  Tensor of_hidden = experts_.GatherBack(layer_.down, of_sum, PerExpert(hidden), routing, &scores_gradient);
  auto [gate, up] = HiddenBack(graph_.Reshape(of_hidden, layer_.hidden_width(weights_.shape), row_.size), {kept.gate, kept.up});
  Tensor parts = experts_.SpreadBack(PerExpert(gate), PerExpert(up), ExpertInput(kept), routing);
  Tensor of_router = experts_.RouteBack(scores_gradient, routing);
  Tensor shared = nullptr;
  if (layer_.shared_down.weight) {
    Tensor input = FeedForwardInput(kept);
    shared = SharedBack(normed_back(layer_.shared_post_norm, [&] { return SharedOutput(input); }), input);
  }
  if (!layer_.expert_norm) {
    Tensor sum = experts_.Sum(graph_.Plus(parts, of_router));
    return InputBack(shared ? graph_.Plus(sum, shared) : sum, kept);
  }
  Tensor of_experts = norms_.Backward(experts_.Sum(parts), kept.middle, layer_.expert_norm);
  return graph_.Plus(graph_.Plus(InputBack(shared, kept), of_experts), RouterInputBack(experts_.Sum(of_router), kept));
}

Tensor LayerGraph::Backward(Tensor x, const Activations& kept, Tensor gradient, const LayerScratch& scratch,
                            bool needs_input_gradient) {
  Begin(x);
  if (!predictions_.empty())
    gradient = StreamsBack(gradient, FeedForwardStream(kept));
  else if (layer_.input_gate.weight || layer_.output_scale)
    gradient = OwnInputBack(gradient, layer_.input_gate.weight ? FeedForwardStream(kept) : nullptr);
  Tensor hidden = Hidden({kept.gate, kept.up});
  Tensor down_gradient = BranchBack(gradient, layer_.ffn_post_norm, [&] { return FeedForwardOutput(hidden, kept); });
  Tensor ffn_gradient = FeedForwardBack(down_gradient, hidden, kept);
  const bool is_parallel = weights_.shape.traits->is_parallel;
  Tensor middle_gradient = is_parallel ? gradient : graph_.Plus(gradient, ffn_gradient);
  if (layer_.laurel_left.weight) middle_gradient = graph_.Scale(middle_gradient, std::sqrt(0.5f));

  Tensor output_gradient =
      BranchBack(middle_gradient, layer_.attention_post_norm, [&] { return MixerOutput(kept); });
  Tensor of_mixer = linears_.Backward(layer_.output, mixer_->Output(kept.inputs, kept.mixed), output_gradient);
  const MixerInputs gradients = mixer_->Backward(kept.inputs, kept.mixed, of_mixer, scratch);
  Tensor sum = InputsBack(gradients, needs_input_gradient);
  Tensor of_laurel = nullptr;
  if (layer_.laurel_left.weight) of_laurel = LaurelBack(middle_gradient, norms_.Forward(input_, layer_.attention_norm));
  if (!sum) return nullptr;
  if (is_parallel) sum = graph_.Plus(sum, ffn_gradient);
  if (of_laurel) sum = graph_.Plus(sum, of_laurel);
  Tensor input_gradient = graph_.Plus(middle_gradient, norms_.Backward(sum, input_, layer_.attention_norm));
  if (predictions_.empty()) return input_gradient;
  of_predictions_[0] = graph_.Plus(of_predictions_[0], input_gradient);
  return JoinStreams(graph_, streams_.PredictBack(of_predictions_, given_));
}

Tensor LayerGraph::InputsBack(const MixerInputs& gradients, bool needs_input_gradient) {
  Tensor input = norms_.Forward(input_, layer_.attention_norm), sum = nullptr;
  const std::vector<const Linear*> linears = layer_.mixer_inputs();
  for (size_t i = 0; i < linears.size(); ++i) {
    Tensor part = linears_.Backward(*linears[i], input, gradients[i], needs_input_gradient);
    sum = sum ? graph_.Plus(sum, part) : part;
  }
  return sum;
}

}  // namespace onpolicy::training
