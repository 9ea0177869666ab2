// Gated delta net of a layer: convolved queries, keys and values, decays and strengths -> the outputs of a state, normed and gated.
#include <algorithm>
#include <cmath>

#include "engine-assumptions/release.h"
#include "kernels/attention/kernels.h"
#include "trainer/convolution.h"
#include "trainer/graphs/share.h"
#include "trainer/mixer.h"

namespace onpolicy::training {
namespace {

// The arguments of a delta net, read from the tensors of a graph node.
struct DeltaNetNode {
  DeltaNetRow row;
  std::atomic<int64_t>* next;
};

// Inputs of a state: (size, heads, row) and (heads, row).
struct StateInputs {
  Tensor query, key, value;
  Tensor decay, beta;
};

// Offsets of the gradients of `StateInputs` in one tensor.
struct GradientPlaces {
  explicit GradientPlaces(const DeltaNetRow& row)
      : key(row.size * row.key_heads * row.tokens),
        value(2 * key),
        decay(value + row.size * row.value_heads * row.tokens),
        beta(decay + row.value_heads * row.tokens),
        end(beta + row.value_heads * row.tokens) {}
  int64_t key, value, decay, beta, end;  // those of queries are first
};

// Works in place on the output, (size, value heads, row), by the kernels that serve models. src[1] to src[5]: query, key, value, decay, beta.
void ForwardShare(Tensor output, int, int, void* data) {
  const auto& node = *static_cast<const DeltaNetNode*>(data);
  const DeltaNetRow& row = node.row;
  const auto size = static_cast<size_t>(row.size), square = size * size;
  const auto at = [&](int source, int64_t token, int64_t heads, int64_t head, int64_t width) {
    const auto* values = static_cast<const float*>(output->src[source]->data);
    return attention::Tokens{values + (token * heads + head) * width, static_cast<size_t>(heads * width)};
  };
  Share(*node.next, row.value_heads, [&](int64_t head) {
    auto* states = reinterpret_cast<float*>(
        ThreadMemory((static_cast<size_t>(row.run_count + 1) * square + size * attention::kDeltaTokens) * sizeof(float)));
    float* zeros = states + static_cast<size_t>(row.run_count) * square;
    std::fill_n(zeros, square, 0.0f);
    for (int64_t i = 0; i < row.run_count; ++i) {
      const DeltaRun& run = row.runs[i];
      float* state = states + static_cast<size_t>(i) * square;
      attention::DeltaRows rows{};
      rows.size = rows.rows = static_cast<int>(size);
      rows.scale = 1 / std::sqrt(static_cast<float>(size));
      rows.factors = zeros + square;
      rows.from = run.parent < 0 ? zeros : states + static_cast<size_t>(run.parent) * square;
      rows.to = state;
      rows.states = 1;
      rows.state_stride = square;
      rows.y_token = static_cast<size_t>(row.value_heads) * size;
      for (int64_t first = 0; first < run.count; first += rows.tokens, rows.from = state) {
        const int64_t token = run.start + first, key_head = row.KeyHead(head);
        rows.tokens = static_cast<int>(std::min<int64_t>(attention::kDeltaTokens, run.count - first));
        rows.after = run.count - first - rows.tokens;
        rows.q = at(1, token, row.key_heads, key_head, row.size);
        rows.k = at(2, token, row.key_heads, key_head, row.size);
        rows.v = at(3, token, row.value_heads, head, row.size);
        rows.gates = at(4, token, row.value_heads, head, 1);
        rows.beta = at(5, token, row.value_heads, head, 1);
        rows.y = static_cast<float*>(output->data) + (token * row.value_heads + head) * row.size;
        attention::BestKernels()->delta(rows);
      }
    }
  });
}

// Fills the gradients. src[0] to src[5]: query, key, value, decay, beta, gradient of the output.
void BackwardShare(Tensor gradients, int, int, void* data) {
  const auto& node = *static_cast<const DeltaNetNode*>(data);
  const auto input = [&](int index) { return static_cast<const float*>(gradients->src[index]->data); };
  const DeltaNetInputs inputs = {input(0), input(1), input(2), input(3), input(4), input(5)};
  const GradientPlaces places(node.row);
  auto* to = static_cast<float*>(gradients->data);
  Share(*node.next, node.row.key_heads, [&](int64_t head) {
    DeltaNetBackward(node.row, inputs, head, ThreadMemory(DeltaNetWorkBytes(node.row)),
                     {to, to + places.key, to + places.value, to + places.decay, to + places.beta});
  });
}

class DeltaNetMixer : public Mixer {
 public:
  explicit DeltaNetMixer(const MixerParts& parts)
      : parts_(parts),
        graph_(parts.graph),
        shape_(parts.weights.shape.delta_net),
        norms_(parts.graph, parts.linears, parts.weights.shape) {}

  void Forward(const MixerInputs& inputs, Tensor mixed) override {
    StateInputs x = ToState(inputs, graph_.Silu(Convolve(inputs)));
    Tensor output = graph_.Reshape(mixed, shape_.size, shape_.value_heads, parts_.row.size);
    if (parts_.linears.is_on_cpu() && HasServingKernels()) {
      graph_.Add(graph_.Custom(output, {x.query, x.key, x.value, x.decay, x.beta}, ForwardShare,
                               graph_.Keep(DeltaNetNode{Row(), graph_.Counter()})));
      return;
    }
    x.query = Repeated(x.query);
    x.key = Repeated(x.key);
    const StatePlan& plan = parts_.row.states;
    std::vector<Tensor> states;  // after each run
    Tensor zeros = graph_.At(parts_.row.zeros, GGML_TYPE_F32, {shape_.size, shape_.size, shape_.value_heads});
    for (const DeltaRun& run : plan.runs) {
      const auto part = [&](Tensor t) { return graph_.Slice(t, 2, run.start, run.count); };
      const auto column = [&](Tensor t) { return graph_.Slice(t, 1, run.start, run.count); };
      Tensor both = graph_.GatedDeltaNet(part(x.query), part(x.key), part(x.value), column(x.decay), column(x.beta),
                                         run.parent < 0 ? zeros : states[static_cast<size_t>(run.parent)]);
      const int64_t width = shape_.value_width();
      graph_.Add(graph_.Copy(Heads(graph_.Numbers(both, 0, width, run.count), shape_.value_heads), part(output)));
      states.push_back(graph_.Reshape(graph_.Numbers(both, width * run.count, shape_.size, shape_.size * shape_.value_heads),
                                      shape_.size, shape_.size, shape_.value_heads));
    }
  }

  Tensor Output(const MixerInputs& inputs, Tensor mixed) override {
    Tensor normed = norms_.Forward(Heads(mixed, shape_.value_heads), parts_.layer.state_norm);
    return Flat(graph_.Times(normed, graph_.Silu(Heads(inputs[kGate], shape_.value_heads))));
  }

  MixerInputs Backward(const MixerInputs& inputs, Tensor mixed, Tensor gradient, const LayerScratch&) override {
    Tensor states = Heads(mixed, shape_.value_heads), gate = Heads(inputs[kGate], shape_.value_heads);
    Tensor each = Heads(gradient, shape_.value_heads);
    Tensor gate_gradient = graph_.SiluBack(graph_.Times(each, norms_.Forward(states, parts_.layer.state_norm)), gate);
    Tensor of_states = norms_.Backward(graph_.Times(each, graph_.Silu(gate)), states, parts_.layer.state_norm);

    Tensor convolved = Convolve(inputs);
    Tensor active = graph_.Silu(convolved);
    const StateInputs x = ToState(inputs, active);
    const StateInputs gradients = StateBack(x, of_states);
    Tensor mixed_gradient = graph_.Concat(graph_.Concat(Flat(L2Back(gradients.query, HeadsAt(active, 0, shape_.key_heads))),
                                                        Flat(L2Back(gradients.key, HeadsAt(active, shape_.key_width(), shape_.key_heads))), 0),
                                          Flat(gradients.value), 0);
    mixed_gradient = ConvolvedBack(graph_, graph_.SiluBack(mixed_gradient, convolved), parts_.layer.convolution, parts_.row.states.previous);
    // beta = sigmoid(b); decay = softplus(alpha + bias) a
    Tensor beta_gradient = graph_.Times(gradients.beta, graph_.Minus(x.beta, graph_.Square(x.beta)));
    Tensor slope = graph_.Times(graph_.Sigmoid(graph_.Plus(AlphaOf(inputs), parts_.layer.alpha_bias)), parts_.layer.decay);
    Tensor alpha_gradient = graph_.Times(gradients.decay, slope);
    if (!parts_.layer.beta_alpha.weight) return {mixed_gradient, Flat(gate_gradient), beta_gradient, alpha_gradient};
    const auto by_key = [&](Tensor t) { return graph_.Reshape(t, shape_.values_per_key(), shape_.key_heads, parts_.row.size); };
    return {mixed_gradient, Flat(gate_gradient), Flat(graph_.Concat(by_key(beta_gradient), by_key(alpha_gradient), 0))};
  }

 private:
  enum { kMixed, kGate, kBeta, kAlpha };  // indices of the inputs; the last two may be one fused input

  // (value heads, row)
  Tensor BetaOf(const MixerInputs& inputs) { return parts_.layer.beta_alpha.weight ? Half(inputs, 0) : inputs[kBeta]; }
  Tensor AlphaOf(const MixerInputs& inputs) { return parts_.layer.beta_alpha.weight ? Half(inputs, 1) : inputs[kAlpha]; }
  Tensor Half(const MixerInputs& inputs, int64_t index) {
    const int64_t count = shape_.values_per_key();
    Tensor by_key = graph_.Reshape(inputs[kBeta], 2 * count, shape_.key_heads, parts_.row.size);
    return Flat(graph_.Contiguous(graph_.Slice(by_key, 0, index * count, count)));
  }

  // (size, key heads, row) -> the layout of the engine's function, which reads head h % heads
  Tensor Repeated(Tensor x) {
    if (!shape_.is_grouped) return x;
    Tensor each = graph_.Reshape(x, shape_.size, 1, shape_.key_heads * parts_.row.size), all = each;
    for (int64_t i = 1; i < shape_.values_per_key(); ++i) all = graph_.Concat(all, each, 1);
    return Heads(graph_.Reshape(all, shape_.value_width(), parts_.row.size), shape_.value_heads);
  }

  Tensor Convolve(const MixerInputs& inputs) {
    return Convolved(graph_, inputs[kMixed], parts_.layer.convolution, parts_.row.states.previous);
  }

  StateInputs ToState(const MixerInputs& inputs, Tensor active) {
    Tensor rate = graph_.SoftPlus(graph_.Plus(AlphaOf(inputs), parts_.layer.alpha_bias));
    return {.query = L2Norm(HeadsAt(active, 0, shape_.key_heads)),
            .key = L2Norm(HeadsAt(active, shape_.key_width(), shape_.key_heads)),
            .value = HeadsAt(active, 2 * shape_.key_width(), shape_.value_heads),
            .decay = graph_.Times(rate, parts_.layer.decay),
            .beta = graph_.Sigmoid(BetaOf(inputs))};
  }

  StateInputs StateBack(const StateInputs& x, Tensor output_gradient) {
    const DeltaNetRow row = Row();
    const GradientPlaces places(row);
    Tensor all = graph_.Custom({places.end, 1, 1}, {x.query, x.key, x.value, x.decay, x.beta, output_gradient}, BackwardShare,
                               graph_.Keep(DeltaNetNode{row, graph_.Counter()}));
    const auto heads = [&](int64_t first, int64_t count) { return Heads(graph_.Numbers(all, first, shape_.size * count, row.tokens), count); };
    return {.query = heads(0, shape_.key_heads),
            .key = heads(places.key, shape_.key_heads),
            .value = heads(places.value, shape_.value_heads),
            .decay = graph_.Numbers(all, places.decay, shape_.value_heads, row.tokens),
            .beta = graph_.Numbers(all, places.beta, shape_.value_heads, row.tokens)};
  }

  DeltaNetRow Row() const {
    const StatePlan& plan = parts_.row.states;
    return {shape_.size,       shape_.key_heads, shape_.value_heads, parts_.row.size,
            shape_.is_grouped, plan.runs.data(), static_cast<int64_t>(plan.runs.size())};
  }

  bool HasServingKernels() const {
    const int64_t size = shape_.size;
    return attention::BestKernels() && (size == 16 || size == 32 || size == 64 || size == 128);
  }

  // x divided by its length. The engine's newer form is its RMS norm divided by the square root of its size.
  Tensor L2Norm(Tensor x) {
    const float epsilon = parts_.weights.shape.norm_epsilon;
    if (!IsEpsilonInDeltaNetNorm()) return graph_.L2Norm(x, epsilon);
    const auto size = static_cast<float>(shape_.size);
    return graph_.Scale(graph_.RmsNorm(x, epsilon / size), 1.0f / std::sqrt(size));
  }
  Tensor L2Back(Tensor gradient, Tensor x) {
    const auto size = static_cast<float>(shape_.size);
    const float epsilon = parts_.weights.shape.norm_epsilon;
    const float added = IsEpsilonInDeltaNetNorm() ? epsilon : epsilon * epsilon;  // to the sum of squares
    return graph_.RmsNormBack(graph_.Scale(gradient, 1 / std::sqrt(size)), x, added / size);
  }

  // Returns some heads of (width, row), as (size, heads, row).
  Tensor HeadsAt(Tensor x, int64_t first, int64_t heads) {
    return Heads(graph_.Contiguous(graph_.Slice(x, 0, first, heads * shape_.size)), heads);
  }
  Tensor Heads(Tensor x, int64_t heads) { return graph_.Reshape(x, shape_.size, heads, x->ne[1]); }
  // (size, heads, row) -> (size x heads, row)
  Tensor Flat(Tensor x) { return graph_.Reshape(x, x->ne[0] * x->ne[1], x->ne[2]); }

  const MixerParts parts_;
  Graph& graph_;
  const DeltaNetShape& shape_;
  Norms norms_;
};

}  // namespace

std::unique_ptr<Mixer> NewDeltaNet(const MixerParts& parts) { return std::make_unique<DeltaNetMixer>(parts); }

}  // namespace onpolicy::training
