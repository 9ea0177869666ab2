// One decoder layer: residual stream in -> residual stream out, and its gradient back through the same layer.
#pragma once
#include "trainer/experts.h"
#include "trainer/mixer.h"
#include "trainer/streams.h"

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

  // Fills `kept.mixed`, which must have its place; computes the mixer's inputs. x: (stream width, row)
  void Mix(Tensor x, Activations& kept);
  Tensor Middle(const Activations& kept);  // (width, row), from what was mixed
  void FeedForward(Activations& kept);
  // (stream width, row)
  Tensor Output(const Activations& kept);

  // Gradient of the output, (stream width, row) -> gradient of the input; null when nobody needs it.
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

  // Takes the layer's input.
  void Begin(Tensor x);
  // What a part of the layer adds to the stream.
  Tensor Branch(Tensor x, Tensor post_norm);
  // Its gradient -> that of x, which is computed only where it is needed.
  template <typename Compute>
  Tensor BranchBack(Tensor gradient, Tensor post_norm, Compute x);
  Tensor MixerOutput(const Activations& kept);
  // The way back from the mixer's inputs to the normed stream, null when nobody needs it.
  Tensor InputsBack(const MixerInputs& gradients, bool needs_input_gradient);
  // (hidden, ...) -> (width, row)
  Tensor FeedForwardOutput(Tensor hidden, const Activations& kept);
  // Its gradient -> that of what the feed-forward part reads: the stream, or the layer's normed input where both parts read that.
  Tensor FeedForwardBack(Tensor gradient, Tensor hidden, const Activations& kept);
  // Gradient of the normed input -> that of what FeedForwardBack says.
  Tensor InputBack(Tensor gradient, const Activations& kept);
  // Of the row that `kept` belongs to.
  const Routing& RoutingOf(const Activations& kept);
  // (used, row) that the row says
  Tensor GivenExperts();
  bool has_experts() const { return layer_.shape.experts > 0; }
  // The layer's output, made of what leaves its feed-forward part, and the gradient back through that.
  Tensor OwnInputOutput(Tensor x);
  Tensor OwnInputBack(Tensor gradient, Tensor x);
  // What the layer's own input adds to the stream because of x, and the gradient of that -> of x.
  Tensor OwnInputPart(Tensor x);
  Tensor OwnInputPartBack(Tensor gradient, Tensor x);
  // The output of a layer with several streams; its gradient -> that of what the layer makes of the first one.
  Tensor StreamsOutput(Tensor made);
  Tensor StreamsBack(Tensor gradient, Tensor made);
  // A low-rank matrix beside attention, of the layer's normed input.
  Tensor Laurel(Tensor normed);
  Tensor LaurelBack(Tensor gradient, Tensor normed);
  bool is_sparse() const { return layer_.index < weights_.shape.sparse_layers; }
  // Gates minus what nineteen in twenty would be below; 0 where that is negative.
  Tensor Sparse(Tensor gate);
  Tensor SparseBack(Tensor gradient, Tensor gate);
  Tensor FeedForwardStream(const Activations& kept);
  // Of an activation alone, without an `up` part.
  Tensor Activated(Tensor x);
  Tensor OwnInput();
  // What the feed-forward part reads, normed; what its experts and their router read.
  Tensor FeedForwardInput(const Activations& kept);
  Tensor ExpertInput(const Activations& kept);
  Tensor RouterInput(const Activations& kept);
  Tensor RouterInputBack(Tensor gradient, const Activations& kept);
  // What a layer's experts add, in front of their norm.
  Tensor ExpertOutput(Tensor hidden, const Activations& kept);
  Tensor ExpertsBack(Tensor gradient, Tensor hidden, const Activations& kept);
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
  Pair ActivationBack(Tensor gradient, const Pair& x);
  Graph& graph_;
  Linears& linears_;
  const Weights& weights_;
  const Layer& layer_;
  const RowInputs& row_;
  Norms norms_;
  std::unique_ptr<Mixer> mixer_;
  Experts experts_;
  Tensor input_ = nullptr;  // of the layer, (width, row)
  Streams streams_;
  StreamParts given_, predictions_;  // its streams, and what it predicts of them; empty: there is one
  StreamParts of_predictions_;       // their gradients
  Routing routing_;         // once it is known
};

}  // namespace onpolicy::training
