// The AdamW update of one parameter's numbers.
#pragma once
#include <cstddef>
#include <cstdint>

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

// Sum of squares, in double.
double SquareOf(const float* values, size_t count);

// What the gradient is multiplied with so that its norm is at most `largest`; 0: never scaled.
double ClipFactor(double norm, double largest);

// One optimizer step, as all parameters take it: `step` counts from 1, `clip` scales the gradient first.
class AdamW {
 public:
  AdamW(const OptimizerOptions& options, int64_t step, double clip);
  // `decays`: whether weight decay pulls the values to zero.
  void Update(float* value, const float* gradient, float* first_moment, float* second_moment, size_t count,
              bool decays = true) const;

 private:
  OptimizerOptions options_;
  double clip_, rate_, second_correction_;
};

}  // namespace onpolicy::training
