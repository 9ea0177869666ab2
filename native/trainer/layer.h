// One decoder layer: residual stream in -> residual stream out, and its gradient back through the same layer.
#pragma once
#include "trainer/attention.h"
#include "trainer/experts.h"
#include "trainer/linear.h"

namespace onpolicy::training {

// What the backward pass needs besides the layer's input; the rest is cheap to compute again.
struct Activations {
  Tensor query = nullptr;     // (heads x head size, row), before norm and rotation
  Tensor key = nullptr;       // (kv heads x head size, row), before norm and rotation
  Tensor value = nullptr;     // (kv heads x head size, row)
  Tensor attended = nullptr;  // (heads x head size, row)
  Tensor middle = nullptr;    // (width, row) residual stream between attention and feed-forward
  Tensor gate = nullptr;      // (hidden x experts used, row)
  Tensor up = nullptr;        // (hidden x experts used, row)
};

// Device memory that a layer's graph fills piece by piece.
struct LayerScratch {
  Slot query_gradient, key_gradient, value_gradient;  // the last two are zero before a graph runs
};

// The parts of a row that every layer's graph reads.
struct RowInputs {
  int64_t size = 0;
  Slot positions;  // (row) int32
  RowAttention attention;
};

class LayerGraph {
 public:
  LayerGraph(Graph& graph, Linears& linears, const Weights& weights, const Layer& layer, const RowInputs& row);

  // Fills `kept.attended`, which must have its place; computes the others. x: (width, row)
  void Attend(Tensor x, Activations& kept);
  Tensor Middle(Tensor x, const Activations& kept);  // (width, row), from `kept.attended`
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

  // (head size, heads, row) each
  struct Projections {
    Tensor query, key, value;
  };

  struct Gelu {
    Tensor share;       // gelu(x) / x
    Tensor derivative;  // gelu'(x)
  };

  Tensor Norm(Tensor x, Tensor weight);
  // What a part of the layer adds to the stream.
  Tensor Branch(Tensor x, Tensor post_norm);
  // Its gradient -> that of x, which is computed only where it is needed.
  template <typename Compute>
  Tensor BranchBack(Tensor gradient, Tensor post_norm, Compute x);
  Tensor AttentionOutput(const Activations& kept);
  // The way back from queries, keys and values to the normed input, null when nobody needs it.
  Tensor InputsBack(Tensor x, const Activations& kept, const Projections& gradients, bool needs_input_gradient);
  // (hidden, ...) -> (width, row)
  Tensor Down(Tensor hidden, const Activations& kept);
  // Gradient of `Down` -> that of the feed-forward part's normed input.
  Tensor FeedForwardBack(Tensor gradient, Tensor hidden, const Activations& kept);
  // Of the row that `kept` belongs to.
  const Routing& RoutingOf(const Activations& kept);
  bool has_experts() const { return weights_.shape.experts > 0; }
  // (hidden x used, row) as (hidden, used, row) where there are experts
  Tensor PerExpert(Tensor x);
  // Rows [start, start + count) of a matmul that holds several.
  Tensor Share(Tensor x, int64_t start, int64_t count) {
    return graph_.Contiguous(graph_.Slice(x, 0, start, count));
  }
  Gelu GeluOf(Tensor x);
  Tensor Hidden(const Activations& kept);
  // Gradient of the hidden activations -> gradients of what they are made of.
  Pair HiddenBack(Tensor gradient, const Activations& kept);
  Tensor NormBack(Tensor gradient, Tensor x, Tensor weight);
  // (heads x head size, row) -> (head size, heads, row), normed and rotated
  Tensor Rotated(Tensor x, int64_t heads, Tensor norm);
  // The gradient's way back through it: (heads x head size, row)
  Tensor RotatedBack(Tensor gradient, Tensor x, int64_t heads, Tensor norm);
  Tensor Heads(Tensor x, int64_t heads) {
    return graph_.Reshape(x, weights_.shape.head_size, heads, row_.size);
  }

  Graph& graph_;
  Linears& linears_;
  const Weights& weights_;
  const Layer& layer_;
  const RowInputs& row_;
  Tensor positions_;
  Experts experts_;
  Routing routing_;  // once it is known
};

}  // namespace onpolicy::training
