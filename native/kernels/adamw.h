// Parameters and their gradients -> the AdamW update.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace onpolicy::training {

struct OptimizerOptions {
  double learning_rate = 5e-6;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  double max_gradient_norm = 0.1;
};

struct StepResult {
  double gradient_norm = 0;
  bool is_applied = false;  // false: the gradients are not finite, and nothing changed
};

// The numbers of one parameter: (count) each.
struct Trained {
  float* value;
  float* gradient;
  float *first_moment, *second_moment;
  size_t count;
  bool decays = true;  // weight decay pulls the values to zero
};

// One AdamW step of all parameters on `threads` threads. Scales gradients so that their norm is at most options.max_gradient_norm;
// 0 means no scaling. `steps` is the number of steps taken so far. The gradients are zero afterwards. The result does not depend on
// the number of threads.
StepResult Optimize(const OptimizerOptions& options, const std::vector<Trained>& parameters, int64_t* steps, int threads);

}  // namespace onpolicy::training
