#include "sampler/chain.h"

#include <cmath>

#include "sampler/candidates.h"
#include "sampler/draw.h"
#include "sampler/logit-values.h"

namespace onpolicy {
namespace {

// Number of best tokens from which mirostat estimates how steeply probabilities fall.
constexpr size_t kMirostatTokens = 100;

// Sum of -p log(p), in nats.
double EntropyOf(const Candidates& candidates) {
  const double total = TotalWeight(candidates);
  double entropy = 0;
  for (size_t i = 0; i < candidates.count; ++i) {
    const double p = static_cast<double>(candidates.weights[i]) / total;
    if (p > 0) entropy -= p * std::log(p);
  }
  return entropy;
}

// Moves the shortest beginning of the sorted `keys` whose tokens weigh more than `limit` to the front. Returns its length.
size_t PartitionByWeight(double limit, const Candidates& candidates, std::vector<uint64_t>& keys) {
  constexpr size_t kFewEnough = 64;
  const auto at = [&](size_t place) { return keys.begin() + static_cast<std::ptrdiff_t>(place); };
  const auto weight = [&](size_t place) { return static_cast<double>(candidates.weights[IndexOfKey(keys[place])]); };
  size_t from = 0, to = keys.size();
  double below = 0;
  while (to - from > kFewEnough) {
    const size_t middle = from + (to - from) / 2;
    std::nth_element(at(from), at(middle), at(to));
    double mass = 0;
    for (size_t i = from; i < middle; ++i) mass += weight(i);
    if (below + mass > limit) {
      to = middle;
    } else {
      below += mass;
      from = middle;
    }
  }
  std::sort(at(from), at(to));
  while (from < to && below <= limit) below += weight(from++);
  return from;
}

// Locally typical sampling, https://arxiv.org/abs/2202.00666: keeps the tokens whose surprise -log(p) is nearest to the entropy,
// until they have more than `mass` of the probability.
void KeepTypical(double mass, SamplerScratch& scratch) {
  Candidates& candidates = scratch.candidates;
  const double entropy = EntropyOf(candidates), total = TotalWeight(candidates);
  std::vector<uint64_t>& keys = scratch.keys;
  keys.clear();
  for (size_t i = 0; i < candidates.count; ++i) {
    const double distance = std::abs(-std::log(static_cast<double>(candidates.weights[i]) / total) - entropy);
    keys.push_back(SortKey(static_cast<float>(-distance), static_cast<uint32_t>(i)));
  }
  keys.resize(PartitionByWeight(mass * total, candidates, keys));
  std::vector<uint32_t>& kept = scratch.active;
  kept.clear();
  for (const uint64_t key : keys) kept.push_back(IndexOfKey(key));
  std::sort(kept.begin(), kept.end());
  size_t next = 0;
  KeepIf(candidates, [&](size_t i) {
    const bool stays = next < kept.size() && kept[next] == i;
    next += stays;
    return stays;
  });
}

// XTC, https://github.com/oobabooga/text-generation-webui/pull/6335: keeps only the least probable of the tokens at or above the
// threshold.
void ExcludeTopChoices(double threshold, Candidates& candidates) {
  const double least = threshold * TotalWeight(candidates);
  const auto is_top = [&](size_t i) { return static_cast<double>(candidates.weights[i]) >= least; };
  size_t count = 0, last = 0;
  for (size_t i = 0; i < candidates.count; ++i) {
    if (!is_top(i)) continue;
    if (count++ == 0 || candidates.values[i] <= candidates.values[last]) last = i;
  }
  if (count > 1) KeepIf(candidates, [&](size_t i) { return i == last || !is_top(i); });
}

// Dynamic temperature, https://arxiv.org/abs/2309.02772: from temperature - range to temperature + range, as the entropy goes from 0
// to that of equal probabilities.
double DynamicTemperature(const SamplerPlan& plan, const Candidates& candidates) {
  const double temperature = static_cast<double>(plan.temperature), range = static_cast<double>(plan.dynatemp_range);
  if (!(range > 0) || candidates.count < 2) return temperature;
  const double share = std::min(EntropyOf(candidates) / std::log(static_cast<double>(candidates.count)), 1.0);
  const double least = std::max(temperature - range, 0.0);
  return least + (temperature + range - least) * std::pow(share, static_cast<double>(plan.dynatemp_exponent));
}

// Mirostat, algorithm 1 of https://arxiv.org/abs/2007.14966: the exponent of a Zipf distribution is estimated from the best tokens;
// with it the number of tokens is chosen whose mean surprise is `mu`.
size_t MirostatCount(const SamplerPlan& plan, double mu, SamplerScratch& scratch) {
  const Candidates& candidates = scratch.candidates;
  std::vector<uint64_t>& keys = scratch.keys;
  keys.clear();
  for (size_t i = 0; i < candidates.count; ++i) keys.push_back(SortKey(candidates.values[i], static_cast<uint32_t>(i)));
  const size_t few = std::min(kMirostatTokens, keys.size());
  std::partial_sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(few), keys.end());
  const auto weight = [&](size_t place) { return static_cast<double>(candidates.weights[IndexOfKey(keys[place])]); };
  double sum_tb = 0, sum_tt = 0;
  for (size_t i = 0; i + 1 < few && weight(i + 1) > 0; ++i) {
    const double t = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    sum_tb += t * std::log(weight(i) / weight(i + 1));
    sum_tt += t * t;
  }
  const double exponent = sum_tb / sum_tt, epsilon = exponent - 1;
  const double tail = 1 - std::pow(static_cast<double>(plan.vocab_size), -epsilon);
  const double count = std::pow(epsilon * std::exp2(mu) / tail, 1 / exponent);
  if (!(count > 1)) return 1;
  return count < static_cast<double>(candidates.count) ? static_cast<size_t>(count) : candidates.count;
}

// Mirostat 2, algorithm 2 of the same paper: removes tokens whose surprise is above `mu`, except the best.
void KeepBelowSurprise(double mu, Candidates& candidates) {
  const double least = TotalWeight(candidates) * std::exp2(-mu);
  const float best = BestValue(candidates);
  KeepIf(candidates, [&](size_t i) {
    return static_cast<double>(candidates.weights[i]) >= least || candidates.values[i] == best;
  });
}

// Top-n-sigma, https://arxiv.org/abs/2411.07641: keeps the tokens whose logit is at most `n` standard deviations below the best one.
void KeepWithinSigmas(double n, Candidates& candidates) {
  const auto count = static_cast<double>(candidates.count);
  double sum = 0, squares = 0;
  for (size_t i = 0; i < candidates.count; ++i) sum += static_cast<double>(candidates.values[i]);
  for (size_t i = 0; i < candidates.count; ++i) {
    const double distance = static_cast<double>(candidates.values[i]) - sum / count;
    squares += distance * distance;
  }
  const double least = static_cast<double>(BestValue(candidates)) - n * std::sqrt(squares / count);
  KeepIf(candidates, [&](size_t i) { return static_cast<double>(candidates.values[i]) >= least; });
}

// Adaptive-p, https://github.com/ggml-org/llama.cpp/pull/17927: tokens are preferred whose probability is near the target. The values
// become logits that fall from the peak, at first with the square of the distance, farther away linearly.
void PreferNear(double target, SamplerScratch& scratch) {
  constexpr double kPeak = 5, kSharpness = 10, kWidth = 0.3;
  Candidates& candidates = scratch.candidates;
  const double total = TotalWeight(candidates);
  scratch.probabilities.clear();
  for (size_t i = 0; i < candidates.count; ++i) {
    const double p = static_cast<double>(candidates.weights[i]) / total;
    const double distance = std::abs(p - target) / kWidth;
    scratch.probabilities.push_back(p);
    candidates.values[i] = static_cast<float>(kPeak - kSharpness * distance * distance / (1 + distance));
  }
  WeighCandidates(BestValue(candidates), WeightScale(1), *scratch.kernels, candidates);
}

bool Adapts(const SamplerPlan& plan) { return plan.adaptive_target >= 0 && plan.mirostat == 0; }

}  // namespace

DrawMemory::DrawMemory(const SamplerPlan& plan) : bound_(2 * static_cast<double>(plan.mirostat_tau)) {
  total_weight_ = 1 / (1 - static_cast<double>(plan.adaptive_decay));
  weighted_sum_ = static_cast<double>(plan.adaptive_target) * total_weight_;
}

double DrawMemory::target(const SamplerPlan& plan) const {
  return std::clamp(2 * static_cast<double>(plan.adaptive_target) - weighted_sum_ / total_weight_, 0.0, 1.0);
}

void DrawMemory::Accept(const SamplerPlan& plan, double surprise) {
  bound_ -= static_cast<double>(plan.mirostat_eta) * (surprise - static_cast<double>(plan.mirostat_tau));
  const auto decay = static_cast<double>(plan.adaptive_decay);
  weighted_sum_ = std::exp2(-surprise) + decay * weighted_sum_;
  total_weight_ = 1 + decay * total_weight_;
}

bool HasMemory(const SamplerPlan& plan) { return plan.mirostat != 0 || Adapts(plan); }

bool UsesChain(const SamplerPlan& plan) {
  return plan.typical_p < 1 || plan.xtc_probability > 0 || plan.dynatemp_range > 0 || plan.mirostat != 0 || plan.top_n_sigma > 0 ||
         plan.adaptive_target >= 0;
}

float FilterInChain(const SamplerPlan& plan, const DrawMemory& memory, double xtc, const RowScan& scan, SamplerScratch& scratch) {
  Candidates& candidates = scratch.candidates;
  const Kernels& kernels = *scratch.kernels;
  if (plan.mirostat != 0) {
    CollectCandidates(scan, -kLargest, scratch);
    WeighCandidates(BestValue(candidates), WeightScale(plan.temperature), kernels, candidates);
    if (plan.mirostat == 1) KeepTopK(MirostatCount(plan, memory.bound(), scratch), scratch);
    if (plan.mirostat == 2) KeepBelowSurprise(memory.bound(), candidates);
    return plan.temperature;
  }
  float threshold = -kLargest;
  if (LimitsCount(plan) && !(plan.top_n_sigma > 0))  // whose deviation is that of all tokens
    threshold = std::max(threshold, LowerBoundOfBest(static_cast<size_t>(plan.top_k), AllowedMaxima(scan, scratch),
                                                     scan.tiles.blocks, scratch.adjusted, scratch.values));
  CollectCandidates(scan, threshold, scratch);
  if (plan.top_n_sigma > 0) KeepWithinSigmas(static_cast<double>(plan.top_n_sigma), candidates);
  WeighCandidates(BestValue(candidates), WeightScale(1), kernels, candidates);
  if (LimitsCount(plan)) KeepTopK(static_cast<size_t>(plan.top_k), scratch);
  if (plan.typical_p < 1) KeepTypical(static_cast<double>(plan.typical_p), scratch);
  if (plan.top_p < 1) KeepTopP((static_cast<double>(plan.top_p) - kTopPTolerance) * TotalWeight(candidates), scratch);
  if (plan.min_p > 0) {
    const float least = MinPThreshold(plan.min_p, 1, BestValue(candidates));
    KeepIf(candidates, [&](size_t i) { return candidates.values[i] >= least; });
  }
  if (xtc <= static_cast<double>(plan.xtc_probability) && plan.xtc_probability > 0)
    ExcludeTopChoices(static_cast<double>(plan.xtc_threshold), candidates);
  const auto temperature = static_cast<float>(
      std::clamp(DynamicTemperature(plan, candidates), 1e-37, static_cast<double>(kLargest)));
  WeighCandidates(BestValue(candidates), WeightScale(temperature), kernels, candidates);
  if (!Adapts(plan)) return temperature;
  PreferNear(memory.target(plan), scratch);
  return 1;
}

double SurpriseOf(const SamplerPlan& plan, size_t index, const SamplerScratch& scratch) {
  if (Adapts(plan)) return -std::log2(scratch.probabilities[index]);
  const Candidates& candidates = scratch.candidates;
  return -std::log2(static_cast<double>(candidates.weights[index]) / TotalWeight(candidates));
}

}  // namespace onpolicy
