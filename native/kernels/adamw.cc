#include "kernels/adamw.h"

#include <algorithm>
#include <cmath>

#include "kernels/best-target.h"

namespace onpolicy::training {
namespace {

struct Factors {
  double clip, beta1, beta2, rate, second_correction, epsilon, decay = 1;
};

ONPOLICY_BEST_TARGET void UpdateRange(const Factors factors, float* __restrict value,
                                      const float* __restrict gradient, float* __restrict first_moment,
                                      float* __restrict second_moment, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const double g = factors.clip * gradient[i];
    const double m = factors.beta1 * first_moment[i] + (1 - factors.beta1) * g;
    const double v = factors.beta2 * second_moment[i] + (1 - factors.beta2) * g * g;
    first_moment[i] = static_cast<float>(m);
    second_moment[i] = static_cast<float>(v);
    value[i] = static_cast<float>(value[i] * factors.decay -
                                  factors.rate * m / (std::sqrt(v) / factors.second_correction + factors.epsilon));
  }
}

}  // namespace

StepResult Optimize(const OptimizerOptions& options, const std::vector<Trained>& parameters, int64_t* steps) {
  double square = 0;
  for (const Trained& one : parameters) {
    double part = 0;
    for (size_t i = 0; i < one.count; ++i) part += static_cast<double>(one.gradient[i]) * one.gradient[i];
    square += part;
  }
  const double norm = std::sqrt(square), largest = options.max_gradient_norm;
  if (!std::isfinite(norm)) return {norm, false};
  const auto step = static_cast<double>(++*steps);
  Factors factors{.clip = largest > 0 ? std::min(1.0, largest / (norm + 1e-6)) : 1,
                  .beta1 = options.beta1,
                  .beta2 = options.beta2,
                  .rate = options.learning_rate / (1 - std::pow(options.beta1, step)),
                  .second_correction = std::sqrt(1 - std::pow(options.beta2, step)),
                  .epsilon = options.epsilon};
  for (const Trained& one : parameters) {
    factors.decay = one.decays ? 1 - options.learning_rate * options.weight_decay : 1;
    UpdateRange(factors, one.value, one.gradient, one.first_moment, one.second_moment, one.count);
  }
  return {norm, true};
}

}  // namespace onpolicy::training
