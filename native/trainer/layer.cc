#include "trainer/layer.h"

namespace onpolicy::training {

LayerGraph::LayerGraph(Graph& graph, Linears& linears, const Weights& weights, const Layer& layer,
                       const RowInputs& row)
    : graph_(graph), linears_(linears), weights_(weights), layer_(layer), row_(row) {
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
  Tensor split = Heads(x, heads);
  if (norm) split = Norm(split, norm);
  return graph_.api().ggml_rope_ext(graph_.context(), split, positions_, weights_.rope_factors, shape.rope_size,
                                    shape.rope_mode, 0, layer_.rope_base, layer_.rope_scale, 0.0f, 1.0f, 32.0f,
                                    1.0f);
}

Tensor LayerGraph::RotatedBack(Tensor gradient, Tensor x, int64_t heads, Tensor norm) {
  const Shape& shape = weights_.shape;
  Tensor back = graph_.api().ggml_rope_ext_back(
      graph_.context(), gradient, positions_, weights_.rope_factors, shape.rope_size, shape.rope_mode, 0,
      layer_.rope_base, layer_.rope_scale, 0.0f, 1.0f, 32.0f, 1.0f);
  if (norm) back = NormBack(back, Heads(x, heads), norm);
  return graph_.Reshape(back, shape.head_size * heads, row_.size);
}

void LayerGraph::Attend(Tensor x, Activations& kept) {
  const Shape& shape = weights_.shape;
  Tensor normed = Norm(x, layer_.attention_norm);
  kept.query = linears_.Forward(layer_.query, normed);
  kept.key = linears_.Forward(layer_.key, normed);
  kept.value = linears_.Forward(layer_.value, normed);
  AttentionForward(graph_, linears_.products(), shape, row_.attention, layer_.is_local,
                   Rotated(kept.query, shape.heads, layer_.query_norm),
                   Rotated(kept.key, shape.kv_heads, layer_.key_norm), Heads(kept.value, shape.kv_heads),
                   Heads(kept.attended, shape.heads));
}

Tensor LayerGraph::AttentionOutput(const Activations& kept) {
  return linears_.Forward(layer_.output, kept.attended);
}

Tensor LayerGraph::Middle(Tensor x, const Activations& kept) {
  return graph_.Plus(x, PostNorm(AttentionOutput(kept), layer_.attention_post_norm));
}

void LayerGraph::FeedForward(Activations& kept) {
  Tensor normed = Norm(kept.middle, layer_.ffn_norm);
  kept.gate = linears_.Forward(layer_.gate, normed);
  kept.up = linears_.Forward(layer_.up, normed);
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

Tensor LayerGraph::Output(const Activations& kept) {
  return graph_.Plus(kept.middle, PostNorm(linears_.Forward(layer_.down, Hidden(kept)), layer_.ffn_post_norm));
}

LayerGraph::Pair LayerGraph::HiddenBack(Tensor gradient, const Activations& kept) {
  Tensor of_activation = graph_.Times(gradient, kept.up);
  if (weights_.shape.activation == Activation::kSilu)
    return {graph_.SiluBack(of_activation, kept.gate), graph_.Times(gradient, graph_.Silu(kept.gate))};
  const Gelu gelu = GeluOf(kept.gate);
  return {graph_.Times(of_activation, gelu.derivative),
          graph_.Times(gradient, graph_.Times(kept.gate, gelu.share))};
}

Tensor LayerGraph::Backward(Tensor x, const Activations& kept, Tensor gradient, const LayerScratch& scratch,
                            bool needs_input_gradient) {
  const Shape& shape = weights_.shape;
  Tensor hidden = Hidden(kept);
  Tensor down_gradient = gradient;
  if (layer_.ffn_post_norm)
    down_gradient = NormBack(gradient, linears_.Forward(layer_.down, hidden), layer_.ffn_post_norm);
  auto [gate_gradient, up_gradient] = HiddenBack(linears_.Backward(layer_.down, hidden, down_gradient), kept);
  Tensor ffn_input = Norm(kept.middle, layer_.ffn_norm);
  Tensor ffn_gradient = graph_.Plus(linears_.Backward(layer_.gate, ffn_input, gate_gradient),
                                    linears_.Backward(layer_.up, ffn_input, up_gradient));
  Tensor middle_gradient = graph_.Plus(gradient, NormBack(ffn_gradient, kept.middle, layer_.ffn_norm));

  Tensor output_gradient = middle_gradient;
  if (layer_.attention_post_norm)
    output_gradient = NormBack(middle_gradient, AttentionOutput(kept), layer_.attention_post_norm);
  Tensor attended_gradient = linears_.Backward(layer_.output, kept.attended, output_gradient);
  auto zeroed = [&](Slot slot, int64_t heads) {
    return graph_.At(slot, GGML_TYPE_F32, {shape.head_size, heads, row_.size});
  };
  Tensor query_gradient = zeroed(scratch.query_gradient, shape.heads);
  Tensor key_gradient = zeroed(scratch.key_gradient, shape.kv_heads);
  Tensor value_gradient = zeroed(scratch.value_gradient, shape.kv_heads);
  AttentionBackward(graph_, linears_.products(), shape, row_.attention, layer_.is_local,
                    Rotated(kept.query, shape.heads, layer_.query_norm),
                    Rotated(kept.key, shape.kv_heads, layer_.key_norm), Heads(kept.value, shape.kv_heads),
                    Heads(attended_gradient, shape.heads), query_gradient, key_gradient, value_gradient);

  Tensor attention_input = Norm(x, layer_.attention_norm);
  auto back = [&](const Linear& linear, Tensor linear_gradient) {
    return linears_.Backward(linear, attention_input, linear_gradient, needs_input_gradient);
  };
  Tensor of_query =
      back(layer_.query, RotatedBack(query_gradient, kept.query, shape.heads, layer_.query_norm));
  Tensor of_key = back(layer_.key, RotatedBack(key_gradient, kept.key, shape.kv_heads, layer_.key_norm));
  Tensor of_value = back(layer_.value, graph_.Reshape(value_gradient, shape.head_size * shape.kv_heads, row_.size));
  if (!needs_input_gradient) return nullptr;
  Tensor sum = graph_.Plus(graph_.Plus(of_query, of_key), of_value);
  return graph_.Plus(middle_gradient, NormBack(sum, x, layer_.attention_norm));
}

}  // namespace onpolicy::training
