#include "sampler/draw.h"

#include <algorithm>
#include <cmath>

#include "sampler/candidates.h"
#include "sampler/chain.h"
#include "sampler/logit-values.h"

namespace onpolicy {
namespace {

bool IsAllowed(const RowScan& scan, size_t id) {
  return scan.mask == nullptr || (scan.mask[id / 32] >> (id % 32) & 1) != 0;
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

// Returns a logit below which even the whole vocabulary has less mass than top_p may drop.
float TopPThreshold(const SamplerPlan& plan, float best, float scale, double total) {
  const double share = (1 - static_cast<double>(plan.top_p)) * total / plan.vocab_size;
  const double exact = static_cast<double>(best) + (std::log2(share) - 1) / static_cast<double>(scale);
  return static_cast<float>(std::max(exact, -static_cast<double>(kLargest)));
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

bool LimitsCount(const SamplerPlan& plan) { return plan.top_k > 0 && plan.top_k < plan.vocab_size; }

bool Filters(const SamplerPlan& plan) {
  return plan.min_p > 0 || LimitsCount(plan) || plan.top_p < 1 || UsesChain(plan);
}

bool NeedsRowWeights(const SamplerPlan& plan) {
  return plan.temperature > 0 && !(plan.min_p > 0) && !LimitsCount(plan) && !UsesChain(plan);
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
  if (plan.min_p > 0) threshold = std::max(threshold, MinPThreshold(plan.min_p, plan.temperature, best));
  if (LimitsCount(plan))
    threshold = std::max(threshold, LowerBoundOfBest(static_cast<size_t>(plan.top_k), maxima,
                                                     scan.tiles.blocks, scratch.adjusted, scratch.values));
  if (NeedsRowWeights(plan)) {
    total = SumRow(scan, scale, scratch);
    threshold = std::max(threshold, TopPThreshold(plan, best, scale, total));
  }
  threshold = std::min(threshold, best);

  CollectCandidates(scan, threshold, scratch);
  WeighCandidates(best, scale, *scratch.kernels, scratch.candidates);
  if (LimitsCount(plan)) KeepTopK(static_cast<size_t>(plan.top_k), scratch);
  if (!limits_mass) return;
  if (!NeedsRowWeights(plan)) total = TotalWeight(scratch.candidates);
  KeepTopP((static_cast<double>(plan.top_p) - kTopPTolerance) * total, scratch);
}

}  // namespace onpolicy
