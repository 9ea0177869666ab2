// LoRA factors of the trained modules with their gradients and optimizer state, in host memory; copies of the factors on the device.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "kernels/adamw.h"
#include "trainer/graphs/device.h"
#include "trainer/weights/weights.h"

namespace onpolicy::training {

// One trained matrix.
struct Parameter {
  std::vector<float> value, gradient, first_moment, second_moment;

  void Resize(size_t count);
};

// y += (alpha / rank) b (a x)
struct Module {
  std::string name;  // "blk.0.attn_q"
  int64_t in = 0, out = 0, rank = 0;
  int64_t experts = 1;  // number of experts, whose factors are stored one after the other
  Parameter a;  // (experts, rank, in)
  Parameter b;  // (experts, out, rank)
  // Copies on the device. A slot has no arena if no graph reads it.
  Slot a_rows;     // (in, rank, experts) as ggml counts: rows of `in`
  Slot a_columns;  // (rank, in, experts)
  Slot b_rows;     // (rank, out, experts)
  Slot b_columns;  // (out, rank, experts)

  size_t a_count() const { return static_cast<size_t>(experts * rank * in); }
  size_t b_count() const { return static_cast<size_t>(experts * out * rank); }
};

class Adapter {
 public:
  // Index and number of threads that share some work.
  struct Part {
    int thread = 0, threads = 1;
  };

  // `modules`: kinds such as "attn_q" or full names such as "blk.0.attn_q". Marks the linears that they select. `is_measured` creates it
  // without memory, for graphs that do not run.
  static std::unique_ptr<Adapter> Create(Device* device, Weights* weights, const std::vector<std::string>& modules, int64_t rank,
                                         double alpha, bool is_measured = false);

  std::vector<Module>& modules() { return modules_; }
  const Module& module(int index) const { return modules_[static_cast<size_t>(index)]; }
  int64_t rank() const { return rank_; }
  float scale() const { return scale_; }
  // Bytes of the factors with their gradients and moments, and of their copies on the device.
  size_t bytes() const;
  int64_t step_count = 0;  // optimizer steps taken, for the moments' bias correction

  // Copies the factors to the device.
  void Upload();
  // Adds `factor` times a gradient of `a`, (experts, rank, in).
  void AccumulateA(int module, float factor, const float* gradient, Part part);
  // Adds `factor` times a gradient of `b` over the scale, transposed as (experts, rank, out).
  void AccumulateB(int module, float factor, const float* gradient_transposed, Part part);
  void ZeroGradients();
  // Resets the moments and their number of steps.
  void ResetOptimizer();
  // One AdamW step on the gathered gradients, which are then zero.
  StepResult Step(const OptimizerOptions& options);

 private:
  Adapter() = default;
  std::vector<Parameter*> Parameters();

  Device* device_ = nullptr;
  std::vector<Module> modules_;
  std::unique_ptr<Arena> arena_;
  int64_t rank_ = 0;
  float scale_ = 0;
};

}  // namespace onpolicy::training
