// One decoder layer: residual stream in -> residual stream out, and its gradient back through the same layer.
#pragma once
#include "trainer/experts.h"
#include "trainer/mixer.h"

namespace onpolicy::training {

// What the backward pass needs besides the layer's input; the rest is cheap to compute again.
struct Activations {
  MixerInputs inputs;
  Tensor mixed = nullptr;   // (mixed width, row)
  Tensor middle = nullptr;  // (width, row) residual stream between the mixer and the feed-forward part
  Tensor gate = nullptr;    // (hidden x experts used, row)
  Tensor up = nullptr;      // (hidden x experts used, row)
};

class LayerGraph {
 public:
  LayerGraph(Graph& graph, Linears& linears, const Weights& weights, const Layer& layer, const RowInputs& row);

  // Fills `kept.mixed`, which must have its place; computes the mixer's inputs. x: (width, row)
  void Mix(Tensor x, Activations& kept);
  Tensor Middle(Tensor x, const Activations& kept);  // (width, row), from what was mixed
  void FeedForward(Activations& kept);
  // (width, row)
  Tensor Output(const Activations& kept);

  // Gradient of the output, (width, row) -> gradient of the input; null when nobody needs it.
  Tensor Backward(Tensor x, const Activations& kept, Tensor gradient, const LayerScratch& scratch,
                  bool needs_input_gradient);

 private:
  struct Pair {
    Tensor gate, up;
  };

  struct Gelu {
    Tensor share;       // gelu(x) / x
    Tensor derivative;  // gelu'(x)
  };

  // What a part of the layer adds to the stream.
  Tensor Branch(Tensor x, Tensor post_norm);
  // Its gradient -> that of x, which is computed only where it is needed.
  template <typename Compute>
  Tensor BranchBack(Tensor gradient, Tensor post_norm, Compute x);
  Tensor MixerOutput(const Activations& kept);
  // The way back from the mixer's inputs to the normed stream, null when nobody needs it.
  Tensor InputsBack(Tensor x, const MixerInputs& gradients, bool needs_input_gradient);
  // (hidden, ...) -> (width, row)
  Tensor FeedForwardOutput(Tensor hidden, const Activations& kept);
  // Its gradient -> that of the feed-forward part's normed input.
  Tensor FeedForwardBack(Tensor gradient, Tensor hidden, const Activations& kept);
  // Of the row that `kept` belongs to.
  const Routing& RoutingOf(const Activations& kept);
  bool has_experts() const { return layer_.shape.experts > 0; }
  // The layer's output, made of what leaves its feed-forward part, and the gradient back through that.
  Tensor OwnInputOutput(Tensor x);
  Tensor OwnInputBack(Tensor gradient, Tensor x);
  Tensor FeedForwardStream(const Activations& kept);
  // Of an activation alone, without an `up` part.
  Tensor Activated(Tensor x);
  Tensor OwnInput();
  // What the feed-forward part reads, normed.
  Tensor FeedForwardInput(const Activations& kept);
  // What the expert that all tokens take adds, and the gradient of that back to its input.
  Pair SharedParts(Tensor input);
  Tensor SharedScore(Tensor input);
  Tensor SharedOutput(Tensor input);
  Tensor SharedBack(Tensor gradient, Tensor input);
  // (hidden x used, row) as (hidden, used, row) where there are experts
  Tensor PerExpert(Tensor x);
  // Rows [start, start + count) of a matmul that holds several.
  Tensor Share(Tensor x, int64_t start, int64_t count) {
    return graph_.Contiguous(graph_.Slice(x, 0, start, count));
  }
  Gelu GeluOf(Tensor x);
  Pair ClampedBack(Tensor gradient, const Pair& x);
  Tensor Hidden(const Pair& x);
  // Gradient of the hidden activations -> gradients of what they are made of.
  Pair HiddenBack(Tensor gradient, const Pair& x);
  Graph& graph_;
  Linears& linears_;
  const Weights& weights_;
  const Layer& layer_;
  const RowInputs& row_;
  Norms norms_;
  std::unique_ptr<Mixer> mixer_;
  Experts experts_;
  Tensor input_ = nullptr;  // of the layer
  Routing routing_;         // once it is known
};

}  // namespace onpolicy::training
