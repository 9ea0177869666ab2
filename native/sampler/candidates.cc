#include "sampler/candidates.h"

#include <cmath>
#include <functional>
#include <numeric>

#include "sampler/logit-values.h"

namespace onpolicy {
namespace {

constexpr double kMinPTolerance = 0x1p-23;

// Inserts the adjusted tokens >= threshold, which are also in order of id, at their positions.
void MergeAdjusted(float threshold, SamplerScratch& scratch) {
  std::vector<AdjustedToken>& adjusted = scratch.adjusted;
  const auto is_below = [&](const AdjustedToken& token) { return token.value < threshold; };
  std::erase_if(adjusted, is_below);
  Candidates& candidates = scratch.candidates;
  size_t left = candidates.count;
  size_t extra = adjusted.size();
  candidates.count += extra;
  for (size_t to = candidates.count; extra > 0;) {
    --to;
    if (left > 0 && candidates.ids[left - 1] > adjusted[extra - 1].id) {
      --left;
      candidates.ids[to] = candidates.ids[left];
      candidates.values[to] = candidates.values[left];
    } else {
      --extra;
      candidates.ids[to] = adjusted[extra].id;
      candidates.values[to] = adjusted[extra].value;
    }
  }
}

// Candidates -> scratch.active, the indices (in order of id) of the few with nearly equal values among which
// the running sum, best first, reaches `limit`. Returns the mass of the candidates above them.
double FindBoundary(double limit, SamplerScratch& scratch) {
  constexpr size_t kBins = 1024, kFewEnough = 512;
  const float* values = scratch.candidates.values.data();
  const float* weights = scratch.candidates.weights.data();
  std::vector<uint32_t>& active = scratch.active;
  active.resize(scratch.candidates.count);
  std::iota(active.begin(), active.end(), 0u);
  double above = 0;
  while (active.size() > kFewEnough) {
    float lowest = values[active[0]], highest = lowest;
    for (const uint32_t i : active) {
      lowest = values[i] < lowest ? values[i] : lowest;
      highest = values[i] > highest ? values[i] : highest;
    }
    // Halved, so that the span of two huge values of opposite sign stays finite.
    const float span = highest / 2 - lowest / 2;
    if (span < 1e-30f) break;  // equal for all purposes
    const float per_bin = static_cast<float>(kBins) / span;
    const auto bin_of = [=](uint32_t i) {
      return std::min(static_cast<uint32_t>((highest / 2 - values[i] / 2) * per_bin), uint32_t{kBins - 1});
    };
    std::fill_n(scratch.masses.Reserve(kBins), kBins, 0.0);
    for (const uint32_t i : active) scratch.masses[bin_of(i)] += static_cast<double>(weights[i]);
    uint32_t boundary = 0;
    while (boundary + 1 < kBins && above + scratch.masses[boundary] < limit)
      above += scratch.masses[boundary++];
    size_t kept = 0;  // written always, counted when it matters: no branch to mispredict
    for (const uint32_t i : active) {
      active[kept] = i;
      kept += bin_of(i) == boundary ? 1 : 0;
    }
    active.resize(kept);
  }
  return above;
}

}  // namespace

float MinPThreshold(float min_p, float temperature, float best) {
  if (min_p >= 1) return best;
  const double exact = static_cast<double>(best) + static_cast<double>(temperature) * std::log(static_cast<double>(min_p));
  const double tolerance = kMinPTolerance * std::max(std::abs(static_cast<double>(best)), std::abs(exact));
  return static_cast<float>(std::max(exact - tolerance, -static_cast<double>(kLargest)));
}

void CollectCandidates(const RowScan& scan, float threshold, SamplerScratch& scratch) {
  CollectAtLeast(scan, scan.mask, AllowedMaxima(scan, scratch), threshold, *scratch.kernels, scratch.candidates);
  MergeAdjusted(threshold, scratch);
  scratch.candidates.weights.Reserve(scan.tiles.blocks * kBlockSize);
}

float BestValue(const Candidates& candidates) {
  float best = kMinusInfinity;
  for (size_t i = 0; i < candidates.count; ++i) best = std::max(best, candidates.values[i]);
  return best;
}

void WeighCandidates(float best, float scale, const Kernels& kernels, Candidates& candidates) {
  kernels.weights(candidates.values.data(), candidates.count, best, scale, candidates.weights.data());
}

double TotalWeight(const Candidates& candidates) {
  double total = 0;
  for (size_t i = 0; i < candidates.count; ++i) total += static_cast<double>(candidates.weights[i]);
  return total;
}

void KeepTopK(size_t k, SamplerScratch& scratch) {
  Candidates& candidates = scratch.candidates;
  if (candidates.count <= k) return;
  std::vector<float>& values = scratch.values;
  values.assign(candidates.values.data(), candidates.values.data() + candidates.count);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(k - 1), values.end(),
                   std::greater<>());
  const float smallest = values[k - 1];
  KeepIf(candidates, [&](size_t i) { return static_cast<size_t>(candidates.values[i] >= smallest); });
}

void KeepTopP(double limit, SamplerScratch& scratch) {
  Candidates& candidates = scratch.candidates;
  double above = FindBoundary(limit, scratch);

  std::vector<uint64_t>& keys = scratch.keys;
  keys.clear();
  for (const uint32_t i : scratch.active) keys.push_back(SortKey(candidates.values[i], i));
  if (!std::is_sorted(keys.begin(), keys.end()))
    std::sort(keys.begin(), keys.end());  // equal values are sorted
  uint64_t cut = keys.front();
  for (size_t i = 0; i < keys.size() && (above < limit || (i == 0 && above == 0)); ++i) {
    cut = keys[i];
    above += static_cast<double>(candidates.weights[IndexOfKey(cut)]);
  }
  const uint32_t cut_index = IndexOfKey(cut);
  const float cut_value = candidates.values[cut_index];
  KeepIf(candidates, [&](size_t i) {
    const size_t is_above = candidates.values[i] > cut_value;
    const size_t is_tied = candidates.values[i] == cut_value;
    return is_above | (is_tied & static_cast<size_t>(i <= cut_index));
  });
}

size_t DrawFromCandidates(double u, const Candidates& candidates) {
  double target = u * TotalWeight(candidates);
  return FindPlace(
      candidates.count, [&](size_t i) { return static_cast<double>(candidates.weights[i]); }, target);
}

}  // namespace onpolicy
