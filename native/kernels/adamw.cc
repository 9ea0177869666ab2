#include "kernels/adamw.h"

#include <algorithm>
#include <cmath>

#include "kernels/best-target.h"

namespace onpolicy::training {
namespace {

struct Factors {
  double clip, beta1, beta2, decay, rate, second_correction, epsilon;
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

double SquareOf(const float* values, size_t count) {
  double square = 0;
  for (size_t i = 0; i < count; ++i) square += static_cast<double>(values[i]) * values[i];
  return square;
}

double ClipFactor(double norm, double largest) { return largest > 0 ? std::min(1.0, largest / (norm + 1e-6)) : 1; }

AdamW::AdamW(const OptimizerOptions& options, int64_t step, double clip) : options_(options), clip_(clip) {
  rate_ = options.learning_rate / (1 - std::pow(options.beta1, static_cast<double>(step)));
  second_correction_ = std::sqrt(1 - std::pow(options.beta2, static_cast<double>(step)));
}

void AdamW::Update(float* value, const float* gradient, float* first_moment, float* second_moment, size_t count,
                   bool decays) const {
  const double decay = decays ? 1 - options_.learning_rate * options_.weight_decay : 1;
  UpdateRange({clip_, options_.beta1, options_.beta2, decay, rate_, second_correction_, options_.epsilon}, value,
              gradient, first_moment, second_moment, count);
}

}  // namespace onpolicy::training
