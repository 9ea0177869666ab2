#include "kernels/adamw.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "base/target.h"
#include "base/threads.h"

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

// A range of numbers of a parameter, for one thread.
struct Piece {
  size_t parameter, first, count;
};

constexpr size_t kPieceNumbers = size_t{1} << 16;

std::vector<Piece> PiecesOf(const std::vector<Trained>& parameters) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < parameters.size(); ++i)
    for (size_t first = 0; first < parameters[i].count; first += kPieceNumbers)
      pieces.push_back({i, first, std::min(kPieceNumbers, parameters[i].count - first)});
  return pieces;
}

// Uses several sums, so that an addition does not wait for the previous one.
ONPOLICY_BEST_TARGET double SumOfSquares(const float* numbers, size_t count) {
  constexpr size_t kSums = 16;
  double sums[kSums] = {}, rest = 0;
  size_t i = 0;
  for (; i + kSums <= count; i += kSums)
    for (size_t s = 0; s < kSums; ++s) sums[s] += static_cast<double>(numbers[i + s]) * numbers[i + s];
  for (; i < count; ++i) rest += static_cast<double>(numbers[i]) * numbers[i];
  return std::accumulate(sums, sums + kSums, rest);
}

}  // namespace

StepResult Optimize(const OptimizerOptions& options, const std::vector<Trained>& parameters, int64_t* steps, int threads) {
  const std::vector<Piece> pieces = PiecesOf(parameters);
  const auto each = [&](auto work) {
    std::atomic<size_t> next{0};
    OnThreads(static_cast<int>(std::min<size_t>(static_cast<size_t>(threads), pieces.size())), [&](int) {
      for (size_t i = next++; i < pieces.size(); i = next++) work(i);
    });
  };
  std::vector<double> squares(pieces.size());
  each([&](size_t i) { squares[i] = SumOfSquares(parameters[pieces[i].parameter].gradient + pieces[i].first, pieces[i].count); });
  const double norm = std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0)), largest = options.max_gradient_norm;
  if (!std::isfinite(norm)) {
    each([&](size_t i) { std::fill_n(parameters[pieces[i].parameter].gradient + pieces[i].first, pieces[i].count, 0.0f); });
    return {norm, false};
  }
  const auto step = static_cast<double>(++*steps);
  const Factors factors{.clip = largest > 0 ? std::min(1.0, largest / (norm + 1e-6)) : 1,
                  .beta1 = options.beta1,
                  .beta2 = options.beta2,
                  .rate = options.learning_rate / (1 - std::pow(options.beta1, step)),
                  .second_correction = std::sqrt(1 - std::pow(options.beta2, step)),
                  .epsilon = options.epsilon};
  each([&](size_t i) {
    const auto [parameter, first, count] = pieces[i];
    const Trained& one = parameters[parameter];
    Factors own = factors;
    own.decay = one.decays ? 1 - options.learning_rate * options.weight_decay : 1;
    UpdateRange(own, one.value + first, one.gradient + first, one.first_moment + first, one.second_moment + first, count);
    std::fill_n(one.gradient + first, count, 0.0f);
  });
  return {norm, true};
}

}  // namespace onpolicy::training
