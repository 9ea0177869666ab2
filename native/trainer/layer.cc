#include "trainer/layer.h"

namespace onpolicy::training {

LayerGraph::LayerGraph(Graph& graph, Linears& linears, const Weights& weights, const Layer& layer,
                       const RowInputs& row)
    : graph_(graph),
      linears_(linears),
      weights_(weights),
      layer_(layer),
      row_(row),
      experts_(graph, linears.matmuls(), weights.shape, layer) {
  positions_ = graph.At(row.positions, GGML_TYPE_I32, {row.size});
}

Tensor LayerGraph::Norm(Tensor x, Tensor weight) {
  return graph_.Times(graph_.RmsNorm(x, weights_.shape.norm_epsilon), weight);
}

Tensor LayerGraph::NormBack(Tensor gradient, Tensor x, Tensor weight) {
  linears_.NormBackward(weight, gradient, x);
  return graph_.RmsNormBack(graph_.Times(gradient, weight), x, weights_.shape.norm_epsilon);
}

Tensor LayerGraph::Rotated(Tensor x, int64_t heads, Tensor norm) {
  const Shape& shape = weights_.shape;
  const Rotation& rotation = layer_.rotation;
  Tensor split = Heads(x, heads);
  if (norm) split = Norm(split, norm);
  if (!rotation.is_rotated) return split;
  return graph_.api().ggml_rope_ext(graph_.context(), split, positions_, weights_.rope_factors, shape.rope_size,
                                    shape.rope_mode, 0, rotation.base, rotation.scale, 0.0f, 1.0f, 32.0f, 1.0f);
}

Tensor LayerGraph::RotatedBack(Tensor gradient, Tensor x, int64_t heads, Tensor norm) {
  const Shape& shape = weights_.shape;
  const Rotation& rotation = layer_.rotation;
  Tensor back = gradient;
  if (rotation.is_rotated)
    back = graph_.api().ggml_rope_ext_back(graph_.context(), gradient, positions_, weights_.rope_factors,
                                           shape.rope_size, shape.rope_mode, 0, rotation.base, rotation.scale, 0.0f,
                                           1.0f, 32.0f, 1.0f);
  if (norm) back = NormBack(back, Heads(x, heads), norm);
  return graph_.Reshape(back, shape.head_size * heads, row_.size);
}

Tensor LayerGraph::Branch(Tensor x, Tensor post_norm) {
  const float scale = weights_.shape.residual_scale;
  if (post_norm) x = Norm(x, post_norm);
  return scale == 1 ? x : graph_.Scale(x, scale);
}

template <typename Compute>
Tensor LayerGraph::BranchBack(Tensor gradient, Tensor post_norm, Compute x) {
  const float scale = weights_.shape.residual_scale;
  if (scale != 1) gradient = graph_.Scale(gradient, scale);
  return post_norm ? NormBack(gradient, x(), post_norm) : gradient;
}

void LayerGraph::Attend(Tensor x, Activations& kept) {
  const Shape& shape = weights_.shape;
  Tensor normed = Norm(x, layer_.attention_norm);
  if (layer_.query_key_value.weight) {
    Tensor all = linears_.Forward(layer_.query_key_value, normed);
    kept.query = Share(all, 0, shape.query_width());
    kept.key = Share(all, shape.query_width(), shape.kv_width());
    kept.value = Share(all, shape.query_width() + shape.kv_width(), shape.kv_width());
  } else {
    kept.query = linears_.Forward(layer_.query, normed);
    kept.key = linears_.Forward(layer_.key, normed);
    kept.value = linears_.Forward(layer_.value, normed);
  }
  AttentionForward(graph_, linears_.matmuls(), shape, row_.attention, layer_.rotation.is_local,
                   Rotated(kept.query, shape.heads, layer_.query_norm),
                   Rotated(kept.key, shape.kv_heads, layer_.key_norm), Heads(kept.value, shape.kv_heads),
                   Heads(kept.attended, shape.heads));
}

Tensor LayerGraph::AttentionOutput(const Activations& kept) {
  return linears_.Forward(layer_.output, kept.attended);
}

Tensor LayerGraph::Middle(Tensor x, const Activations& kept) {
  return graph_.Plus(x, Branch(AttentionOutput(kept), layer_.attention_post_norm));
}

void LayerGraph::FeedForward(Activations& kept) {
  const Shape& shape = weights_.shape;
  Tensor normed = Norm(kept.middle, layer_.ffn_norm);
  if (has_experts()) {
    const Routing& routing = RoutingOf(kept);
    kept.gate = graph_.Reshape(experts_.Spread(layer_.gate, normed, routing), shape.hidden_width(), row_.size);
    kept.up = graph_.Reshape(experts_.Spread(layer_.up, normed, routing), shape.hidden_width(), row_.size);
  } else if (shape.is_gate_fused) {
    Tensor both = linears_.Forward(layer_.gate_up, normed);
    kept.gate = Share(both, 0, shape.hidden);
    kept.up = Share(both, shape.hidden, shape.hidden);
  } else {
    kept.gate = linears_.Forward(layer_.gate, normed);
    kept.up = linears_.Forward(layer_.up, normed);
  }
}

const Routing& LayerGraph::RoutingOf(const Activations& kept) {
  if (!routing_.selected) routing_ = experts_.Route(Norm(kept.middle, layer_.ffn_norm));
  return routing_;
}

Tensor LayerGraph::PerExpert(Tensor x) {
  if (!has_experts()) return x;
  return graph_.Reshape(x, weights_.shape.hidden, weights_.shape.experts_used, row_.size);
}

Tensor LayerGraph::Hidden(const Activations& kept) {
  if (weights_.shape.activation == Activation::kSilu) return graph_.SwiGlu(kept.gate, kept.up);
  if (weights_.shape.activation == Activation::kGelu) return graph_.GeGlu(kept.gate, kept.up);
  return graph_.Times(graph_.Times(kept.gate, GeluOf(kept.gate).share), kept.up);
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

Tensor LayerGraph::Down(Tensor hidden, const Activations& kept) {
  return has_experts() ? experts_.Gather(layer_.down, PerExpert(hidden), RoutingOf(kept))
                       : linears_.Forward(layer_.down, hidden);
}

Tensor LayerGraph::Output(const Activations& kept) {
  return graph_.Plus(kept.middle, Branch(Down(Hidden(kept), kept), layer_.ffn_post_norm));
}

LayerGraph::Pair LayerGraph::HiddenBack(Tensor gradient, const Activations& kept) {
  Tensor of_activation = graph_.Times(gradient, kept.up);
  if (weights_.shape.activation == Activation::kSilu)
    return {graph_.SiluBack(of_activation, kept.gate), graph_.Times(gradient, graph_.Silu(kept.gate))};
  const Gelu gelu = GeluOf(kept.gate);
  return {graph_.Times(of_activation, gelu.derivative),
          graph_.Times(gradient, graph_.Times(kept.gate, gelu.share))};
}

Tensor LayerGraph::FeedForwardBack(Tensor gradient, Tensor hidden, const Activations& kept) {
  if (has_experts()) {
    const Routing& routing = RoutingOf(kept);
    Tensor scores_gradient = nullptr;
    Tensor of_hidden = experts_.GatherBack(layer_.down, gradient, PerExpert(hidden), routing, &scores_gradient);
    auto [gate, up] = HiddenBack(graph_.Reshape(of_hidden, weights_.shape.hidden_width(), row_.size), kept);
    return experts_.SpreadBack(PerExpert(gate), PerExpert(up), scores_gradient, routing);
  }
  auto [gate, up] = HiddenBack(linears_.Backward(layer_.down, hidden, gradient), kept);
  Tensor input = Norm(kept.middle, layer_.ffn_norm);
  if (weights_.shape.is_gate_fused) return linears_.Backward(layer_.gate_up, input, graph_.Concat(gate, up, 0));
  return graph_.Plus(linears_.Backward(layer_.gate, input, gate), linears_.Backward(layer_.up, input, up));
}

Tensor LayerGraph::Backward(Tensor x, const Activations& kept, Tensor gradient, const LayerScratch& scratch,
                            bool needs_input_gradient) {
  const Shape& shape = weights_.shape;
  Tensor hidden = Hidden(kept);
  Tensor down_gradient = BranchBack(gradient, layer_.ffn_post_norm, [&] { return Down(hidden, kept); });
  Tensor ffn_gradient = FeedForwardBack(down_gradient, hidden, kept);
  Tensor middle_gradient = graph_.Plus(gradient, NormBack(ffn_gradient, kept.middle, layer_.ffn_norm));

  Tensor output_gradient =
      BranchBack(middle_gradient, layer_.attention_post_norm, [&] { return AttentionOutput(kept); });
  Tensor attended_gradient = linears_.Backward(layer_.output, kept.attended, output_gradient);
  auto zeroed = [&](Slot slot, int64_t heads) {
    return graph_.At(slot, GGML_TYPE_F32, {shape.head_size, heads, row_.size});
  };
  const Projections gradients = {zeroed(scratch.query_gradient, shape.heads),
                                 zeroed(scratch.key_gradient, shape.kv_heads),
                                 zeroed(scratch.value_gradient, shape.kv_heads)};
  AttentionBackward(graph_, linears_.matmuls(), shape, row_.attention, layer_.rotation.is_local,
                    Rotated(kept.query, shape.heads, layer_.query_norm),
                    Rotated(kept.key, shape.kv_heads, layer_.key_norm), Heads(kept.value, shape.kv_heads),
                    Heads(attended_gradient, shape.heads), gradients.query, gradients.key, gradients.value);
  Tensor sum = InputsBack(x, kept, gradients, needs_input_gradient);
  return sum ? graph_.Plus(middle_gradient, NormBack(sum, x, layer_.attention_norm)) : nullptr;
}

Tensor LayerGraph::InputsBack(Tensor x, const Activations& kept, const Projections& gradients,
                              bool needs_input_gradient) {
  const Shape& shape = weights_.shape;
  Tensor query = RotatedBack(gradients.query, kept.query, shape.heads, layer_.query_norm);
  Tensor key = RotatedBack(gradients.key, kept.key, shape.kv_heads, layer_.key_norm);
  Tensor value = graph_.Reshape(gradients.value, shape.kv_width(), row_.size);
  Tensor input = Norm(x, layer_.attention_norm);
  auto back = [&](const Linear& linear, Tensor gradient) {
    return linears_.Backward(linear, input, gradient, needs_input_gradient);
  };
  if (layer_.query_key_value.weight)
    return back(layer_.query_key_value, graph_.Concat(graph_.Concat(query, key, 0), value, 0));
  Tensor of_query = back(layer_.query, query);
  Tensor of_key = back(layer_.key, key);
  Tensor of_value = back(layer_.value, value);
  return needs_input_gradient ? graph_.Plus(graph_.Plus(of_query, of_key), of_value) : nullptr;
}

}  // namespace onpolicy::training
