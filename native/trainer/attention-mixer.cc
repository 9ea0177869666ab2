// Attention of a layer: queries, keys and values, normed and rotated -> attended values, gated if the model has gates.
#include "trainer/mixer.h"

namespace onpolicy::training {
namespace {

// (head size, heads, row) each. Keys and values are null if the layer reads those of another layer.
struct Projections {
  Tensor query, key, value;
};

class AttentionMixer : public Mixer {
 public:
  explicit AttentionMixer(const MixerParts& parts)
      : parts_(parts),
        graph_(parts.graph),
        shape_(parts.layer.shape.attention),
        norms_(parts.graph, parts.linears, parts.weights.shape),
        positions_(graph_.At(parts.row.positions, GGML_TYPE_I32,
                             {(shape_.rotation.has_sections() ? kPositions : 1) * parts.row.size})) {}

  void Forward(const MixerInputs& inputs, Tensor mixed) override {
    const Projections x = Attended(Split(inputs));
    if (shape_.is_kv_read) {
      graph_.Add(graph_.Copy(x.key, SharedAt(own_keys().key)));
      graph_.Add(graph_.Copy(x.value, SharedAt(own_keys().value)));
    }
    AttentionForward(graph_, parts_.linears.matmuls(), shape_, parts_.row.attention, parts_.layer.sinks, x.query, x.key, x.value,
                     Heads(mixed, shape_.heads));
  }

  Tensor Output(const MixerInputs& inputs, Tensor mixed) override {
    return shape_.is_gated ? graph_.Times(mixed, graph_.Sigmoid(GateOf(inputs))) : mixed;
  }

  MixerInputs Backward(const MixerInputs& inputs, Tensor mixed, Tensor gradient, const LayerScratch& scratch) override {
    Tensor gate_gradient = nullptr;
    if (shape_.is_gated) {
      Tensor share = graph_.Sigmoid(GateOf(inputs));
      // s' = s - s^2
      gate_gradient = graph_.Times(graph_.Times(gradient, mixed), graph_.Minus(share, graph_.Square(share)));
      gradient = graph_.Times(gradient, share);
    }
    const Projections x = Split(inputs);
    const auto at = [&](Slot slot, int64_t heads) {
      return graph_.At(slot, GGML_TYPE_F32, {shape_.head_size, heads, parts_.row.size});
    };
    const bool are_shared = shape_.kv_layer >= 0 || shape_.is_kv_read;
    const Projections gradients = {at(scratch.query_gradient, shape_.heads),
                                   at(are_shared ? own_keys().key_gradient : scratch.key_gradient, shape_.kv_heads),
                                   at(are_shared ? own_keys().value_gradient : scratch.value_gradient, shape_.kv_heads)};
    const Projections attended = Attended(x);
    AttentionBackward(graph_, parts_.linears.matmuls(), shape_, parts_.row.attention, parts_.layer.sinks, attended.query, attended.key,
                      attended.value, Heads(gradient, shape_.heads), gradients.query, gradients.key, gradients.value);
    Tensor query = RotatedBack(gradients.query, x.query, parts_.layer.query_norm);
    if (gate_gradient) query = graph_.Concat(query, Heads(gate_gradient, shape_.heads), 0);
    query = Flat(query);
    if (!x.key) return {query};
    Tensor key = RotatedBack(gradients.key, x.key, parts_.layer.key_norm), value = gradients.value;
    if (shape_.are_values_normed) value = graph_.RmsNormBack(value, x.value, parts_.weights.shape.norm_epsilon);
    if (inputs.size() == 2) return {query, Flat(graph_.Plus(key, value))};
    key = Flat(key), value = Flat(value);
    if (parts_.layer.query_key_value.weight) return {graph_.Concat(graph_.Concat(query, key, 0), value, 0)};
    return {query, key, value};
  }

 private:
  Projections Split(const MixerInputs& inputs) {
    if (parts_.layer.query_key_value.weight) {
      const int64_t query = shape_.query_width(), kv = shape_.kv_width();
      return {Heads(Share(inputs[0], 0, query), shape_.heads), Heads(Share(inputs[0], query, kv), shape_.kv_heads),
              Heads(Share(inputs[0], query + kv, kv), shape_.kv_heads)};
    }
    Tensor query = shape_.is_gated ? Share(QueriesAndGates(inputs), 0, shape_.head_size) : Heads(inputs[0], shape_.heads);
    if (shape_.kv_layer >= 0) return {query, nullptr, nullptr};
    return {query, Heads(inputs[1], shape_.kv_heads), Heads(inputs.back(), shape_.kv_heads)};
  }

  // Returns rotated queries and keys, and values, as attention reads them.
  Projections Attended(const Projections& x) {
    Tensor query = Rotated(x.query, parts_.layer.query_norm);
    if (!x.key) return {query, SharedAt(own_keys().key), SharedAt(own_keys().value)};
    Tensor value = shape_.are_values_normed ? graph_.RmsNorm(x.value, parts_.weights.shape.norm_epsilon) : x.value;
    return {query, Rotated(x.key, parts_.layer.key_norm), value};
  }

  // Returns the keys and values that this layer shares with others: its own, or those that it reads.
  const SharedKeys& own_keys() const {
    const auto index = shape_.kv_layer >= 0 ? shape_.kv_layer : parts_.layer.index;
    return parts_.row.shared_keys[static_cast<size_t>(index)];
  }
  Tensor SharedAt(Slot slot) { return graph_.At(slot, GGML_TYPE_F32, {shape_.head_size, shape_.kv_heads, parts_.row.size}); }

  Tensor QueriesAndGates(const MixerInputs& inputs) {
    return graph_.Reshape(inputs[0], 2 * shape_.head_size, shape_.heads, parts_.row.size);
  }
  // (heads x head size, row)
  Tensor GateOf(const MixerInputs& inputs) { return Flat(Share(QueriesAndGates(inputs), shape_.head_size, shape_.head_size)); }

  // Returns rows [start, start + count) of a fused matmul.
  Tensor Share(Tensor x, int64_t start, int64_t count) { return graph_.Contiguous(graph_.Slice(x, 0, start, count)); }
  Tensor Heads(Tensor x, int64_t heads) { return graph_.Reshape(x, shape_.head_size, heads, parts_.row.size); }
  // (size, heads, row) -> (size x heads, row)
  Tensor Flat(Tensor x) { return graph_.Reshape(x, x->ne[0] * x->ne[1], x->ne[2]); }

  Tensor Rotated(Tensor x, Tensor norm) {
    return shape_.are_norms_last ? Normed(Rotated(x), norm) : Rotated(Normed(x, norm));
  }

  // Returns the gradient before rotation and norm.
  Tensor RotatedBack(Tensor gradient, Tensor x, Tensor norm) {
    if (shape_.are_norms_last) return RotatedBack(NormedBack(gradient, Rotated(x), norm));
    return NormedBack(RotatedBack(gradient), x, norm);
  }

  Tensor Normed(Tensor x, Tensor norm) { return AsHeads(norms_.Forward(AsNormed(x), norm), x); }
  Tensor NormedBack(Tensor gradient, Tensor x, Tensor norm) {
    return AsHeads(norms_.Backward(AsNormed(gradient), AsNormed(x), norm), x);
  }
  Tensor AsNormed(Tensor x) { return shape_.are_norms_wide ? Flat(x) : x; }
  Tensor AsHeads(Tensor x, Tensor like) { return shape_.are_norms_wide ? Heads(x, like->ne[1]) : x; }

  Tensor Rotated(Tensor x) { return shape_.rotation.is_on ? Rotate(x, false) : x; }
  Tensor RotatedBack(Tensor gradient) {
    return shape_.rotation.is_on ? Rotate(gradient, true) : gradient;
  }

  Tensor Rotate(Tensor x, bool is_back) {
    const Rotation& r = shape_.rotation;
    const Library& api = graph_.api();
    if (r.has_sections()) {
      auto sections = r.sections;
      const auto rope = is_back ? api.ggml_rope_multi_back : api.ggml_rope_multi;
      return rope(graph_.context(), x, positions_, r.has_factors ? parts_.weights.rope_factors : nullptr, r.size, sections.data(), r.mode, r.original_context,
                  r.base, r.scale, r.extension, r.magnitude, r.beta_fast, r.beta_slow);
    }
    const auto rope = is_back ? api.ggml_rope_ext_back : api.ggml_rope_ext;
    return rope(graph_.context(), x, positions_, parts_.weights.rope_factors, r.size, r.mode, r.original_context, r.base, r.scale,
                r.extension, r.magnitude, r.beta_fast, r.beta_slow);
  }

  const MixerParts parts_;
  Graph& graph_;
  const AttentionShape& shape_;
  Norms norms_;
  Tensor positions_;
};

}  // namespace

std::unique_ptr<Mixer> NewAttention(const MixerParts& parts) { return std::make_unique<AttentionMixer>(parts); }

}  // namespace onpolicy::training
