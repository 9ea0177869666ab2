// A GGUF file's weights, all trained -> float32 values with gradients and optimizer state, on the CPU.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/adamw.h"
#include "trainer/weights/weights.h"

namespace onpolicy::training {

// One tensor of the file.
struct FullParameter {
  std::string name;             // "blk.0.attn_q.weight"
  ggml_type stored_type;        // in the file
  size_t offset_in_file;        // bytes
  int64_t in = 0, columns = 1;  // as ggml counts
  bool is_multiplied = false;   // true for the weight of a linear layer
  Tensor value = nullptr;       // (in, columns)
  Tensor gradient = nullptr;    // (in, columns)
  Tensor matmul = nullptr;     // (in, columns) what matmuls read: the value, or a BF16 copy
  Tensor transposed = nullptr;  // (columns, in), of the same type
  std::vector<float> first_moment = {}, second_moment = {};

  size_t count() const { return static_cast<size_t>(in * columns); }
  float* values() const { return static_cast<float*>(value->data); }
  float* gradients() const { return static_cast<float*>(gradient->data); }
};

class FullWeights {
 public:
  // Replaces the tensors of `weights` by trained ones. If `is_narrow`, matmuls read BF16, which doubles the speed.
  static std::unique_ptr<FullWeights> Create(Device* device, Weights* weights, bool is_narrow);

  std::vector<FullParameter>& parameters() { return parameters_; }
  // Returns the parameter whose value or matmul a graph uses, or null.
  const FullParameter* Find(Tensor used) const;
  bool is_narrow() const { return is_narrow_; }
  int64_t step_count = 0;

  // Fills the copies that matmuls read. Must be called after values changed.
  void Refresh();
  void ZeroGradients();
  // One AdamW step on the gathered gradients, which are then zero. Weight decay takes matrices only.
  StepResult Step(const OptimizerOptions& options);

 private:
  FullWeights() = default;
  void Add(const Weights& weights, Tensor from);
  void Place(Device* device, const std::vector<Tensor>& sources);
  FullParameter& Own(Tensor from) { return parameters_[places_.at(from)]; }

  Device* device_ = nullptr;
  bool is_narrow_ = false;
  std::vector<FullParameter> parameters_;
  std::unordered_map<const ggml_tensor*, size_t> places_;  // index of the parameter, by each of its tensors
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Graph> tensors_;
};

}  // namespace onpolicy::training
