// Frozen weights, an adapter and packed rows -> log-probabilities, gradients, optimizer steps. One call at a time.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "trainer/adapter.h"
#include "trainer/head.h"
#include "trainer/row-memory.h"
#include "trainer/row.h"

namespace onpolicy::training {

struct TrainerOptions {
  std::string model;   // path of a GGUF file
  std::string device;  // as ggml names it; empty: the CPU
  int threads = 1;
  int64_t rank = 8;
  double alpha = 16;
  std::vector<std::string> modules;
  int64_t context = 0;  // as Weights::Load takes it
  // Bytes for training beside the weights. 0 means that activations of a fixed size are stored, regardless of the model's size.
  size_t memory_budget = 0;
  // Multiplies in float32 for all types of weights, without rounding activations.
  bool wide = false;
};

class Trainer {
 public:
  static std::unique_ptr<Trainer> Open(const TrainerOptions& options);

  // Returns the bytes that training on a row of `tokens` tokens takes beside the weights, if no activations are kept and it is not `wide`.
  // Reads the file's header.
  static size_t Measure(const TrainerOptions& options, int64_t tokens);
  // Names of the linear layers that `options.modules` selects, in the order of the model. Reads the file's header.
  static std::vector<std::string> ModuleNames(const TrainerOptions& options);

  const Shape& shape() const { return weights_->shape; }
  const std::string& device_name() const { return device_->name(); }
  // Bytes allocated beside the weights.
  size_t memory_bytes() const;
  int64_t kept_layers() const { return memory_ ? memory_->need().kept_layers : 0; }

  Adapter& adapter() { return *adapter_; }
  // Must be called after a change of the adapter's numbers, so that the next forward pass uploads them.
  void AdapterChanged() {
    is_forward_fresh_ = false;
    is_adapter_stale_ = true;
  }

  // Fails with OUT_OF_MEMORY for a row on which training would take more than the budget.
  void CheckMemory(PackedRow row) const;
  // `gradients` is true if Backward follows. `adapter_off` uses the frozen weights alone.
  Scores Forward(PackedRow row, bool gradients, bool adapter_off);
  // d(loss)/d(log-probability), (targets) of the last forward. On failure the gathered gradients are zero.
  void Backward(const std::vector<float>& gradient);
  StepResult Step(const OptimizerOptions& options);

  void Abort() { device_->Abort(); }
  void ClearAbort() { device_->ClearAbort(); }

 private:
  Trainer() = default;
  void PrepareRow(const PackedRow& row, bool gradients);
  RowInputs PlanRow(const PackedRow& row, bool gradients) const;
  static RowMemory::Need NeedOf(const PackedRow& row, const RowInputs& inputs, bool gradients);
  static void Bind(const RowMemory& memory, RowInputs* inputs);
  // Bytes of the gradients of the layer with the largest modules.
  size_t GradientBytes() const;
  // Bytes for a row if no activations are kept. `inputs` is the row's plan, with gradients.
  size_t LeastBytes(const PackedRow& row, RowInputs inputs) const;
  // Returns LeastBytes. Fails if the budget is smaller.
  size_t RequireMemory(const PackedRow& row, const RowInputs& inputs) const;
  // Number of layers of the row in row_ whose activations are kept.
  int64_t LayersToKeep(const PackedRow& row) const;
  void AddEmbedding(Graph& graph, const RowMemory& memory, int64_t size) const;
  void AddLayer(Graph& graph, Linears& linears, const RowMemory& memory, const RowInputs& row, int64_t index) const;
  void AddLayerBack(Graph& graph, Linears& linears, const RowMemory& memory, const RowInputs& row, int64_t index, Slot gradient,
                    Slot input_gradient) const;
  void ForwardLayer(int64_t index, const Adapter* adapter);
  void BackwardLayer(int64_t index, Slot gradient, Slot input_gradient);
  void BackwardLayers(std::vector<float> gradient);

  TrainerOptions options_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Weights> weights_;
  std::unique_ptr<Adapter> adapter_;
  std::unique_ptr<RowMemory> memory_;
  RowInputs row_;
  int64_t targets_ = 0;
  std::vector<float> coldness_;  // (targets) 1 / temperature; empty: 1
  float gradient_scale_ = 1;  // undoes the scale of the running backward pass
  bool is_adapter_stale_ = true;  // the device holds older factors than the host
  bool is_forward_fresh_ = false;  // the last forward's numbers fit the adapter
};

}  // namespace onpolicy::training
