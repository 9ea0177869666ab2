// Trains all weights of a small model with cross-entropy on the CPU: packed rows -> gradients, optimizer steps.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "trainer/full-linears.h"
#include "trainer/layer.h"
#include "trainer/row.h"

namespace onpolicy::training {

struct FullTrainerOptions {
  std::string model;  // path of a GGUF file
  int threads = 1;
  int64_t context = 0;  // as Weights::Load takes it
  bool is_narrow = false;  // matmuls in BF16
};

class FullTrainer {
 public:
  static std::unique_ptr<FullTrainer> Open(const FullTrainerOptions& options);

  const Shape& shape() const { return weights_->shape; }
  FullWeights& weights() { return *full_; }

  // Returns the log-probability of each target of the row.
  std::vector<float> Score(const PackedRow& row) { return Run(row, nullptr); }
  // Returns the same as Score, and adds the gradient of the sum over targets of -weight x log-probability. `target_weights`: (targets)
  std::vector<float> AddGradients(const PackedRow& row, const std::vector<float>& target_weights);

  StepResult Step(const OptimizerOptions& options) { return full_->Step(options); }

  void Abort() { device_->Abort(); }
  void ClearAbort() { device_->ClearAbort(); }

 private:
  struct LayerSlots {
    Slot mixed;            // (heads x head size, row)
    LayerScratch scratch;  // with gradients
  };

  FullTrainer() = default;
  std::vector<float> Run(PackedRow row, const std::vector<float>* target_weights);
  // Reserves memory for the row and fills the inputs of a graph.
  void Prepare(const PackedRow& row, const std::vector<float>& target_weights);
  void Build(Graph& graph, FullLinears& linears, const PackedRow& row, bool gradients);

  std::unique_ptr<Device> device_;
  std::unique_ptr<Weights> weights_;
  std::unique_ptr<FullWeights> full_;
  std::unique_ptr<Arena> arena_;  // of the last row
  Slot tokens_, logit_rows_;
  Slot stats_;           // (2, targets) target ids; then log-probabilities and entropies
  Slot target_weights_;  // (targets)
  std::vector<LayerSlots> layers_;
  RowInputs row_;
};

}  // namespace onpolicy::training
