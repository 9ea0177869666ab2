#include "kernels/head-rows.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/target.h"

namespace onpolicy::training {
namespace {

// e^x for x <= 0 to about 2 units in the last place; 0 below -87. No branches.
inline float ExpOfNegative(float x) {
  const float clamped = x < -87.0f ? -87.0f : x;
  const float scaled = clamped * 1.44269504f;
  const float rounded = (scaled + 12582912.0f) - 12582912.0f;  // nearest integer
  const float rest = (clamped - rounded * 0.693359375f) + rounded * 2.12194440e-4f;
  float sum = 1.9875691500e-4f;
  sum = sum * rest + 1.3981999507e-3f;
  sum = sum * rest + 8.3334519073e-3f;
  sum = sum * rest + 4.1665795894e-2f;
  sum = sum * rest + 1.6666665459e-1f;
  sum = sum * rest + 5.0000001201e-1f;
  sum = sum * rest * rest + rest + 1.0f;
  const float power = std::bit_cast<float>((static_cast<int32_t>(rounded) + 127) << 23);
  return x < -87.0f ? 0.0f : sum * power;
}

constexpr int kLanes = 16;        // independent sums, so that the loops vectorise without reordering
constexpr int64_t kChunk = 4096;  // sums of more values than this are gathered in double

// values -> e^(value - shift); returns their sum in `sum` and the sum of e^(value - shift) (value - shift) in `weighted`.
ONPOLICY_BEST_TARGET void Exponentials(float* values, int64_t count, float shift, double* sum, double* weighted) {
  *sum = *weighted = 0;
  for (int64_t start = 0; start < count; start += kChunk) {
    const int64_t size = std::min(kChunk, count - start);
    float sums[kLanes] = {}, products[kLanes] = {};
    float* chunk = values + start;
    int64_t i = 0;
    for (; i + kLanes <= size; i += kLanes)
      for (int lane = 0; lane < kLanes; ++lane) {
        const float difference = chunk[i + lane] - shift;
        const float power = ExpOfNegative(difference);
        chunk[i + lane] = power;
        sums[lane] += power;
        products[lane] += power * (difference < -87.0f ? -87.0f : difference);
      }
    for (; i < size; ++i) {
      const float difference = chunk[i] - shift;
      const float power = ExpOfNegative(difference);
      chunk[i] = power;
      sums[0] += power;
      products[0] += power * std::max(difference, -87.0f);
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      *sum += sums[lane];
      *weighted += products[lane];
    }
  }
}

ONPOLICY_BEST_TARGET void Scale(float* values, int64_t count, float factor) {
  for (int64_t i = 0; i < count; ++i) values[i] *= factor;
}

}  // namespace

float SoftMaxRow(float* logits, int64_t count, int32_t target, float largest) {
  const double chosen = static_cast<double>(logits[target]) - largest;
  double sum = 0, weighted = 0;
  Exponentials(logits, count, largest, &sum, &weighted);
  Scale(logits, count, static_cast<float>(1 / sum));
  logits[target] = -static_cast<float>((sum - std::exp(chosen)) / sum);
  return static_cast<float>(std::log(sum) - weighted / sum);
}

}  // namespace onpolicy::training
