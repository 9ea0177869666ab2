// Mixers, by which the tokens of a row see others: linear layers of the normed stream -> input of the output matrix; and the gradients.
#pragma once
#include <memory>
#include <vector>

#include "trainer/attention.h"
#include "trainer/norms.h"

namespace onpolicy::training {

// Results of a layer's `mixer_inputs`, (out, row) each, or their gradients.
using MixerInputs = std::vector<Tensor>;

// Keys and values that several layers read, (kv width, row), and their gradients.
struct SharedKeys {
  Slot key, value, key_gradient, value_gradient;
};

// The parts of a row that every layer's graph reads.
struct RowInputs {
  int64_t size = 0;
  Slot positions;  // (row, kPositions) int32
  RowAttention attention;
  StatePlan states;  // only for a model with recurrent layers
  bool is_routed = false;  // tokens use the experts given by the row
  Slot experts;            // this and the next slots are as in RowMemory
  Slot own_inputs;
  std::vector<SharedKeys> shared_keys;
  Slot zeros;        // the state of a recurrent layer before its first token
};

// Device memory that a layer's graph fills piece by piece.
struct LayerScratch {
  Slot query_gradient, key_gradient, value_gradient;  // the last two are zero before a graph runs
};

class Mixer {
 public:
  virtual ~Mixer() = default;

  // Fills `mixed`, (mixed width, row), which must have memory.
  virtual void Forward(const MixerInputs& inputs, Tensor mixed) = 0;
  // Returns the input of the output matrix, (mixed width, row).
  virtual Tensor Output(const MixerInputs& /*inputs*/, Tensor mixed) { return mixed; }
  // Gradient of `Output` -> gradients of the inputs.
  virtual MixerInputs Backward(const MixerInputs& inputs, Tensor mixed, Tensor gradient, const LayerScratch& scratch) = 0;
};

// References that mixers are created from. All of them must outlive the mixer.
struct MixerParts {
  Graph& graph;
  Linears& linears;
  const Weights& weights;
  const Layer& layer;
  const RowInputs& row;
};

std::unique_ptr<Mixer> NewAttention(const MixerParts& parts);
std::unique_ptr<Mixer> NewDeltaNet(const MixerParts& parts);
std::unique_ptr<Mixer> NewConvolution(const MixerParts& parts);

}  // namespace onpolicy::training
