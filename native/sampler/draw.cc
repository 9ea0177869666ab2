// A scanned row -> one token: the greedy choice, or a draw after min_p, top_k and top_p.
#include "sampler/draw.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "sampler/float-limits.h"
#include "sampler/sort-key.h"

namespace onpolicy {
namespace {


// Boundaries of min_p and top_p are compared with the accuracy that float32 logits have, so that a token
// which meets one exactly on paper is treated as meeting it.
constexpr double kTopPTolerance = 5e-7;
constexpr double kMinPTolerance = 0x1p-23;

bool LimitsCount(const SamplerPlan& plan) { return plan.top_k > 0 && plan.top_k < plan.vocab_size; }

const float* AllowedMaxima(const RowScan& scan, const SamplerScratch& scratch) {
  return scan.mask == nullptr ? scratch.maxima.data() : scratch.masked_maxima.data();
}

bool IsAllowed(const RowScan& scan, size_t id) {
  return scan.mask == nullptr || (scan.mask[id / 32] >> (id % 32) & 1) != 0;
}

// The first place at which the running sum of `weights` exceeds `target`. Rounding can leave `target` at or
// past the sum: then the last place with any weight. `target` becomes what is left of it inside that place.
template <class Weight>
size_t FindPlace(size_t count, Weight weight, double& target) {
  double below = 0, last_below = 0;
  size_t last = 0;
  for (size_t i = 0; i < count; ++i) {
    const double w = weight(i);
    if (!(w > 0)) continue;
    last = i;
    last_below = below;
    below += w;
    if (below > target) break;
  }
  target = std::max(target - last_below, 0.0);
  return last;
}

// Adds the adjusted tokens to the block sums; scratch.tile_masses and their total, relative to the best
// logit.
double SumRow(const RowScan& scan, float scale, SamplerScratch& scratch) {
  const RowTiles& tiles = scan.tiles;
  const size_t adjusted = scratch.adjusted.size();
  std::vector<float>& distances = scratch.distances;
  distances.assign((adjusted + 15) / 16 * 16, 0);
  for (size_t i = 0; i < adjusted; ++i) {
    const AdjustedToken& token = scratch.adjusted[i];
    const size_t tile = static_cast<size_t>(token.id) / kTileSize;
    distances[i] = token.value - scratch.tile_references[tile];
  }
  scratch.kernels->weights(distances.data(), adjusted, 0, scale, distances.data());
  for (size_t i = 0; i < adjusted; ++i)
    scratch.sums[static_cast<size_t>(scratch.adjusted[i].id) / kBlockSize] += distances[i];

  const double best = static_cast<double>(BestLogit(scan, scratch));
  scratch.tile_masses.resize(tiles.tiles);
  double total = 0;
  for (size_t t = 0; t < tiles.tiles; ++t) {
    double sum = 0;
    for (size_t b = 0; b < tiles.BlockCount(t); ++b)
      sum += static_cast<double>(scratch.sums[tiles.FirstBlock(t) + b]);
    const double distance = static_cast<double>(scratch.tile_references[t]) - best;
    scratch.tile_masses[t] = sum > 0 ? sum * std::exp2(distance * static_cast<double>(scale)) : 0;
    total += scratch.tile_masses[t];
  }
  return total;
}

// The lowest logit that min_p keeps.
float MinPThreshold(const SamplerPlan& plan, float best) {
  if (plan.min_p >= 1) return best;
  const double exact = static_cast<double>(best) +
                       static_cast<double>(plan.temperature) * std::log(static_cast<double>(plan.min_p));
  const double tolerance = kMinPTolerance * std::max(std::abs(static_cast<double>(best)), std::abs(exact));
  return static_cast<float>(std::max(exact - tolerance, -static_cast<double>(kLargest)));
}

// A logit below which even the whole vocabulary has less mass than top_p may drop.
float TopPThreshold(const SamplerPlan& plan, float best, float scale, double total) {
  const double share = (1 - static_cast<double>(plan.top_p)) * total / plan.vocab_size;
  const double exact = static_cast<double>(best) + (std::log2(share) - 1) / static_cast<double>(scale);
  return static_cast<float>(std::max(exact, -static_cast<double>(kLargest)));
}

// Inserts the adjusted tokens >= threshold, which are in order of id too, at their places.
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

template <class Keep>
void KeepIf(Candidates& candidates, Keep keep) {
  size_t kept = 0;  // written always, counted when it matters: no branch to mispredict
  for (size_t i = 0; i < candidates.count; ++i) {
    const size_t stays = keep(i);  // 0 or 1
    candidates.ids[kept] = candidates.ids[i];
    candidates.values[kept] = candidates.values[i];
    candidates.weights[kept] = candidates.weights[i];
    kept += stays;
  }
  candidates.count = kept;
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

void WeighCandidates(const RowScan& scan, float best, float scale, const Kernels& kernels,
                     Candidates& candidates) {
  candidates.weights.Reserve(scan.tiles.blocks * kBlockSize);
  kernels.weights(candidates.values.data(), candidates.count, best, scale, candidates.weights.data());
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

// Keeps the best candidates, best first and lowest id first among equals, while those before them weigh less
// than `limit`: the same as masking, from the worst up, all that fit into the rest of the mass.
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

}  // namespace

float BestLogit(const RowScan& scan, const SamplerScratch& scratch) {
  float best = scan.masked_max;
  for (const AdjustedToken& token : scratch.adjusted) best = std::max(best, token.value);
  return best;
}

int32_t ArgMax(const RowScan& scan, const SamplerScratch& scratch) {
  const float best = BestLogit(scan, scratch);
  int32_t token = std::numeric_limits<int32_t>::max();
  for (const AdjustedToken& adjusted : scratch.adjusted)
    if (adjusted.value == best) token = std::min(token, adjusted.id);
  if (scan.masked_max < best) return token;
  const float* maxima = AllowedMaxima(scan, scratch);
  const size_t block = static_cast<size_t>(std::find(maxima, maxima + scan.tiles.blocks, best) - maxima);
  const float* values = scan.tiles.Block(block);
  for (size_t i = 0; i < kBlockSize; ++i) {
    const size_t id = block * kBlockSize + i;
    if (values[i] == best && IsAllowed(scan, id)) return std::min(token, static_cast<int32_t>(id));
  }
  return token;
}

bool Filters(const SamplerPlan& plan) { return plan.min_p > 0 || LimitsCount(plan) || plan.top_p < 1; }

bool NeedsRowWeights(const SamplerPlan& plan) {
  return plan.temperature > 0 && !(plan.min_p > 0) && !LimitsCount(plan);
}

int32_t DrawFromRow(const RowScan& scan, float scale, double u, SamplerScratch& scratch) {
  const RowTiles& tiles = scan.tiles;
  double target = u * SumRow(scan, scale, scratch);
  const size_t tile = FindPlace(
      tiles.tiles, [&](size_t t) { return scratch.tile_masses[t]; }, target);
  const float reference = scratch.tile_references[tile];
  const double distance = static_cast<double>(reference) - static_cast<double>(BestLogit(scan, scratch));
  target /= std::exp2(distance * static_cast<double>(scale));
  const size_t first = tiles.FirstBlock(tile);
  const size_t block =
      first + FindPlace(
                  tiles.BlockCount(tile),
                  [&](size_t b) { return static_cast<double>(scratch.sums[first + b]); }, target);

  const size_t begin = block * kBlockSize;
  float values[kBlockSize], weights[kBlockSize];
  std::copy_n(tiles.Block(block), kBlockSize, values);
  for (size_t i = 0; i < kBlockSize; ++i)
    if (!IsAllowed(scan, begin + i)) values[i] = kMinusInfinity;
  for (const AdjustedToken& token : scratch.adjusted)
    if (static_cast<size_t>(token.id) / kBlockSize == block)
      values[static_cast<size_t>(token.id) - begin] = token.value;
  scratch.kernels->weights(values, kBlockSize, reference, scale, weights);
  const size_t place = FindPlace(
      kBlockSize, [&](size_t i) { return static_cast<double>(weights[i]); }, target);
  return static_cast<int32_t>(begin + place);
}

void FilterCandidates(const SamplerPlan& plan, const RowScan& scan, SamplerScratch& scratch) {
  const float best = BestLogit(scan, scratch);
  const float scale = WeightScale(plan.temperature);
  const float* maxima = AllowedMaxima(scan, scratch);
  const bool limits_mass = plan.top_p < 1;
  double total = 0;
  float threshold = -kLargest;
  if (plan.min_p > 0) threshold = std::max(threshold, MinPThreshold(plan, best));
  if (LimitsCount(plan))
    threshold = std::max(threshold, LowerBoundOfBest(static_cast<size_t>(plan.top_k), maxima,
                                                     scan.tiles.blocks, scratch.adjusted, scratch.values));
  if (NeedsRowWeights(plan)) {
    total = SumRow(scan, scale, scratch);
    threshold = std::max(threshold, TopPThreshold(plan, best, scale, total));
  }
  threshold = std::min(threshold, best);

  CollectAtLeast(scan, scan.mask, maxima, threshold, *scratch.kernels, scratch.candidates);
  MergeAdjusted(threshold, scratch);
  WeighCandidates(scan, best, scale, *scratch.kernels, scratch.candidates);
  if (LimitsCount(plan)) KeepTopK(static_cast<size_t>(plan.top_k), scratch);
  if (!limits_mass) return;
  if (!NeedsRowWeights(plan))
    for (size_t i = 0; i < scratch.candidates.count; ++i)
      total += static_cast<double>(scratch.candidates.weights[i]);
  KeepTopP((static_cast<double>(plan.top_p) - kTopPTolerance) * total, scratch);
}

int32_t DrawFromCandidates(double u, const Candidates& candidates) {
  double total = 0;
  for (size_t i = 0; i < candidates.count; ++i) total += static_cast<double>(candidates.weights[i]);
  double target = u * total;
  const size_t place = FindPlace(
      candidates.count, [&](size_t i) { return static_cast<double>(candidates.weights[i]); }, target);
  return candidates.ids[place];
}

}  // namespace onpolicy
