#include "sampler/row-scan.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "sampler/logit-values.h"

namespace onpolicy {
namespace {

constexpr double kLog2E = 1.4426950408889634;

// Weights below 2^-46 of the largest are skipped a block at a time: a whole vocabulary of them is below one
// rounding error of a float32 probability.
constexpr float kSkipBits = 46;

RowTiles CutIntoTiles(const float* row, size_t vocab_size, Buffer<float>& last_tile) {
  RowTiles tiles;
  tiles.row = row;
  tiles.vocab_size = vocab_size;
  tiles.blocks = (vocab_size + kBlockSize - 1) / kBlockSize;
  tiles.tiles = (tiles.blocks + kTileBlocks - 1) / kTileBlocks;
  if (vocab_size % kBlockSize != 0) {
    const size_t begin = (tiles.tiles - 1) * kTileSize;
    float* copy = last_tile.Reserve(kTileSize);
    std::fill(std::copy(row + begin, row + vocab_size, copy), copy + kTileSize, kMinusInfinity);
    tiles.last_tile = copy;
  }
  return tiles;
}

// The block maximum below which a block's weights do not count.
float SkipFloor(float reference, float scale) { return std::max(reference - kSkipBits / scale, -kLargest); }

double Sum(const float* values, size_t count) {
  double sums[4] = {0, 0, 0, 0};  // independent, so that additions overlap
  size_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (size_t j = 0; j < 4; ++j) sums[j] += static_cast<double>(values[i + j]);
  for (; i < count; ++i) sums[0] += static_cast<double>(values[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

float MaxOf(const float* values, size_t count) {
  float best = kMinusInfinity;
  for (size_t i = 0; i < count; ++i) best = values[i] > best ? values[i] : best;
  return best;
}

RowScan ScanTiles(const ScanRequest& request, const RowTiles& tiles, SamplerScratch& scratch) {
  const Kernels& kernels = *scratch.kernels;
  const float log2e = WeightScale(1);
  RowScan scan;
  scan.tiles = tiles;
  scan.mask = request.mask;
  scratch.maxima.Reserve(tiles.blocks);
  scratch.masked_maxima.Reserve(tiles.blocks);
  scratch.sums.Reserve(tiles.blocks);
  scratch.tile_references.Reserve(tiles.tiles);

  // One exponential serves both sums when they are over the same tokens at the same scale.
  const bool shared = request.log_sum && request.weights && request.mask == nullptr && request.scale == log2e;
  float reference = request.reference;
  float raw_reference = kMinusInfinity;
  double raw_sum = 0;
  for (size_t t = 0; t < tiles.tiles; ++t) {
    const float* tile = tiles.Tile(t);
    const size_t first = tiles.FirstBlock(t), blocks = tiles.BlockCount(t);
    float* maxima = scratch.maxima.data() + first;
    if (!kernels.block_maxima(tile, blocks, maxima)) {
      scan.has_nan = true;
      return scan;
    }
    const float tile_max = MaxOf(maxima, blocks);
    scan.max = std::max(scan.max, tile_max);

    const float* allowed_maxima = maxima;
    float allowed_max = tile_max;
    const uint32_t* mask = request.mask == nullptr ? nullptr : request.mask + 2 * first;
    if (mask != nullptr) {
      float* masked = scratch.masked_maxima.data() + first;
      kernels.masked_maxima(tile, mask, blocks, maxima, masked);
      allowed_maxima = masked;
      allowed_max = MaxOf(masked, blocks);
    }
    scan.masked_max = std::max(scan.masked_max, allowed_max);

    float* sums = scratch.sums.data() + first;
    if (request.log_sum && !shared && tile_max > kMinusInfinity) {
      if (tile_max > raw_reference) {
        raw_sum *= std::exp(static_cast<double>(raw_reference) - static_cast<double>(tile_max));
        raw_reference = tile_max;
      }
      kernels.block_sums(tile, nullptr, blocks, maxima, raw_reference, log2e, SkipFloor(raw_reference, log2e),
                         sums);
      raw_sum += Sum(sums, blocks);
    }
    if (request.weights) {
      reference = std::max(reference, allowed_max);
      scratch.tile_references[t] = reference;
      if (reference == kMinusInfinity) {
        std::fill_n(sums, blocks, 0.0f);
      } else {
        kernels.block_sums(tile, mask, blocks, allowed_maxima, reference, request.scale,
                           SkipFloor(reference, request.scale), sums);
      }
      if (shared && tile_max > kMinusInfinity) {
        if (reference > raw_reference) {
          raw_sum *= std::exp(static_cast<double>(raw_reference) - static_cast<double>(reference));
          raw_reference = reference;
        }
        raw_sum += Sum(sums, blocks);
      }
    }
  }
  if (request.log_sum) scan.log_sum = std::log(raw_sum);
  return scan;
}

}  // namespace

float WeightScale(float temperature) {
  const double scale = kLog2E / static_cast<double>(temperature);
  return static_cast<float>(std::clamp(scale, 1e-30, static_cast<double>(kLargest)));
}

RowScan ScanRow(const ScanRequest& request, SamplerScratch& scratch) {
  RowScan scan =
      ScanTiles(request, CutIntoTiles(request.row, request.vocab_size, scratch.last_tile), scratch);
  if (scan.has_nan || scan.max <= kLargest) return scan;

  float* row = scratch.finite_row.Reserve(request.vocab_size);
  for (size_t i = 0; i < request.vocab_size; ++i) row[i] = std::min(request.row[i], kLargest);
  ScanRequest finite = request;
  finite.row = row;
  return ScanTiles(finite, CutIntoTiles(row, finite.vocab_size, scratch.last_tile), scratch);
}

float LowerBoundOfBest(size_t k, const float* maxima, size_t count,
                       const std::vector<AdjustedToken>& adjusted, std::vector<float>& values) {
  if (k == 0 || k > count + adjusted.size()) return kMinusInfinity;
  // The k-th best of the maxima over groups is a bound already; it spares most values the selection below.
  size_t groups = count;
  while (groups > 64 && groups / 2 > k + k / 2) groups /= 2;
  float bound = kMinusInfinity;
  if (groups < count) {
    values.assign(maxima, maxima + groups);
    for (size_t begin = groups; begin < count; begin += groups)
      for (size_t i = 0; i < std::min(groups, count - begin); ++i)
        values[i] = maxima[begin + i] > values[i] ? maxima[begin + i] : values[i];
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(k - 1), values.end(),
                     std::greater<>());
    bound = values[k - 1];
  }
  values.resize(count + adjusted.size());
  size_t kept = 0;  // written always, counted when it matters: no branch to mispredict
  for (size_t i = 0; i < count; ++i) {
    values[kept] = maxima[i];
    kept += maxima[i] >= bound ? 1 : 0;
  }
  for (const AdjustedToken& token : adjusted) {
    values[kept] = token.value;
    kept += token.value >= bound ? 1 : 0;
  }
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(k - 1),
                   values.begin() + static_cast<std::ptrdiff_t>(kept), std::greater<>());
  return values[k - 1];
}

void CollectAtLeast(const RowScan& scan, const uint32_t* mask, const float* maxima, float threshold,
                    const Kernels& kernels, Candidates& candidates) {
  const RowTiles& tiles = scan.tiles;
  int32_t* ids = candidates.ids.Reserve(tiles.blocks * kBlockSize);
  float* values = candidates.values.Reserve(tiles.blocks * kBlockSize);
  size_t count = 0;
  for (size_t t = 0; t < tiles.tiles; ++t) {
    const size_t first = tiles.FirstBlock(t);
    count += kernels.collect(tiles.Tile(t), mask == nullptr ? nullptr : mask + 2 * first, tiles.BlockCount(t),
                             maxima + first, threshold, static_cast<int32_t>(first * kBlockSize), ids + count,
                             values + count);
  }
  while (count > 0 && static_cast<size_t>(ids[count - 1]) >= tiles.vocab_size) --count;  // padding
  candidates.count = count;
}

}  // namespace onpolicy
