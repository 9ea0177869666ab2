// One decoder layer: residual stream in -> residual stream out, and its gradient back through the same layer.
#pragma once
#include "trainer/experts.h"
#include "trainer/mixer.h"
#include "trainer/streams.h"

namespace onpolicy::training {

// Activations that the backward pass needs besides the layer's input. The others are cheap to compute again.
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

  // Fills `kept.mixed`, which must have memory, and computes the mixer's inputs. x: (stream width, row)
  void Mix(Tensor x, Activations& kept);
  Tensor Middle(const Activations& kept);  // (width, row), computed from `kept.mixed`
  void FeedForward(Activations& kept);
  // (stream width, row)
  Tensor Output(const Activations& kept);

  // Gradient of the output, (stream width, row) -> gradient of the input, or null if it is not needed.
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

  // Sets the layer's input.
  void Begin(Tensor x);
  // Returns the value that a part of the layer adds to the stream: x, normed and scaled.
  Tensor Branch(Tensor x, Tensor post_norm);
  // Gradient of the branch -> gradient of x. Calls `x` only if its value is needed.
  template <typename Compute>
  Tensor BranchBack(Tensor gradient, Tensor post_norm, Compute x);
  Tensor MixerOutput(const Activations& kept);
  // Gradients of the mixer's inputs -> gradient of the normed stream, or null if it is not needed.
  Tensor InputsBack(const MixerInputs& gradients, bool needs_input_gradient);
  // (hidden, ...) -> (width, row)
  Tensor FeedForwardOutput(Tensor hidden, const Activations& kept);
  // Gradient of the output -> gradient of the feed-forward part's input: the stream, or the layer's normed input if both parts read that.
  Tensor FeedForwardBack(Tensor gradient, Tensor hidden, const Activations& kept);
  // Gradient of the normed input -> the gradient that FeedForwardBack returns.
  Tensor InputBack(Tensor gradient, const Activations& kept);
  // Returns the routing of the row that `kept` belongs to.
  const Routing& RoutingOf(const Activations& kept);
  // (used, row) experts given by the row
  Tensor GivenExperts();
  bool has_experts() const { return layer_.shape.experts > 0; }
  // Output of the feed-forward part -> the layer's output: with the layer's own input added, and scaled; and the gradient back.
  Tensor OwnInputOutput(Tensor x);
  Tensor OwnInputBack(Tensor gradient, Tensor x);
  // Returns the value that the layer's own input adds to the stream x; its gradient -> the gradient of x.
  Tensor OwnInputPart(Tensor x);
  Tensor OwnInputPartBack(Tensor gradient, Tensor x);
  // Returns the output of a layer with several streams; its gradient -> the gradient of `made`, the new value of the first stream.
  Tensor StreamsOutput(Tensor made);
  Tensor StreamsBack(Tensor gradient, Tensor made);
  // A low-rank matrix beside attention, of the layer's normed input.
  Tensor Laurel(Tensor normed);
  Tensor LaurelBack(Tensor gradient, Tensor normed);
  bool is_sparse() const { return layer_.index < weights_.shape.sparse_layers; }
  // Returns gates minus the value that 95 % would be below, or 0 if that is negative.
  Tensor Sparse(Tensor gate);
  Tensor SparseBack(Tensor gradient, Tensor gate);
  Tensor FeedForwardStream(const Activations& kept);
  // Returns the activation of x, without an `up` part.
  Tensor Activated(Tensor x);
  Tensor OwnInput();
  // Normed inputs of the feed-forward part, of its experts and of their router.
  Tensor FeedForwardInput(const Activations& kept);
  Tensor ExpertInput(const Activations& kept);
  Tensor RouterInput(const Activations& kept);
  Tensor RouterInputBack(Tensor gradient, const Activations& kept);
  // Returns the output of a layer's experts, before their norm.
  Tensor ExpertOutput(Tensor hidden, const Activations& kept);
  Tensor ExpertsBack(Tensor gradient, Tensor hidden, const Activations& kept);
  // The output of the expert that all tokens share, its parts, and the gradient of its input.
  Pair SharedParts(Tensor input);
  Tensor SharedScore(Tensor input);
  Tensor SharedOutput(Tensor input);
  Tensor SharedBack(Tensor gradient, Tensor input);
  // (hidden x used, row) -> (hidden, used, row) if the layer has experts
  Tensor PerExpert(Tensor x);
  // Returns rows [start, start + count) of a fused matmul.
  Tensor Share(Tensor x, int64_t start, int64_t count) {
    return graph_.Contiguous(graph_.Slice(x, 0, start, count));
  }
  Gelu GeluOf(Tensor x);
  Pair ClampedBack(Tensor gradient, const Pair& x);
  Tensor Hidden(const Pair& x);
  // Gradient of the hidden activations -> gradients of gate and up.
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
  StreamParts given_, predictions_;  // its streams and their predictions; empty if there is only one
  StreamParts of_predictions_;       // their gradients
  Routing routing_;         // once it is known
};

}  // namespace onpolicy::training
