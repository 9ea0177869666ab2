// Device memory for one row: tensors that all layers share, and those that the backward pass needs.
#pragma once
#include <memory>
#include <vector>

#include "trainer/layer.h"

namespace onpolicy::training {

// Slots of `Activations`.
struct ActivationSlots {
  std::vector<Slot> inputs;
  Slot mixed, middle, gate, up;
};

class RowMemory {
 public:
  struct Need {
    int64_t size = 0;         // tokens
    int64_t targets = 0;      // predictions
    size_t mask_values = 0;   // of the attention plan
    bool gradients = false;   // a backward pass follows
    int64_t kept_layers = 0;  // layers whose activations are kept instead of computed again

    bool FitsInto(const Need& other) const;
  };

  // Creates a plan without memory, for graphs that are only measured. Slots would reuse the memory of `former`, which may be null.
  static std::unique_ptr<RowMemory> Plan(Device* device, const Weights& weights, size_t gradient_bytes, const Need& need,
                                         std::unique_ptr<RowMemory> former = nullptr);
  // Like Plan, with memory.
  static std::unique_ptr<RowMemory> Create(Device* device, const Weights& weights, size_t gradient_bytes, const Need& need,
                                           std::unique_ptr<RowMemory> former);
  // Returns the bytes of one layer's activations.
  static size_t KeptBytes(const Weights& weights, const Layer& layer, int64_t size);

  const Need& need() const { return need_; }
  size_t bytes() const { return arena_->allocated_bytes() + gradient_outputs_->allocated_bytes(); }
  size_t planned_bytes() const { return arena_->reserved_bytes() + gradient_outputs_->reserved_bytes(); }
  // Residual stream before layer `index`; after the last one for `index` = layers.
  Slot Residual(int64_t index) const {
    return residuals_[need_.gradients ? static_cast<size_t>(index) : static_cast<size_t>(index % 2)];
  }

  Slot tokens, positions, masks, logit_rows;
  Slot experts;     // (used, layers with experts, row) as numbers of 32 bits, or below 0
  Slot own_inputs;  // (input width, layers, row) of a model whose layers have their own inputs
  Slot zeros;  // as many as a recurrent layer's state has
  Slot target_tokens;       // (targets)
  Slot flat_targets;        // (targets) index of each target's logit in its chunk of logits
  Slot head_stats;          // (2, targets): log-probability and entropy; in two parts if the CPU does not compute them
  Slot head_gradient;       // (targets)
  Slot coldness;            // (targets) 1 / temperature, of a row that has temperatures
  Slot head_errors;         // (width, targets): gradients of minus each target's log-probability with respect to the head's input
  Slot gradients[2];        // (width, row) of the residual stream
  ActivationSlots scratch;  // for layers whose activations are not kept
  LayerScratch layer_scratch;
  std::vector<SharedKeys> shared_keys;  // (layers)
  std::vector<ActivationSlots> kept;  // (kept layers)
  const Arena* gradient_outputs() const { return gradient_outputs_.get(); }

 private:
  void Reserve(const Weights& weights, size_t gradient_bytes);

  Need need_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Arena> gradient_outputs_;
  std::vector<Slot> residuals_;
};

}  // namespace onpolicy::training
