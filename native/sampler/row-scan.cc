// One row of logits -> its maximum, its log-sum, block maxima and block weights, in one pass over memory.
#include "sampler/row-scan.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace onpolicy {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr double kLog2E = 1.4426950408889634;

// Weights below 2^-46 of the largest are skipped a block at a time: a whole vocabulary of them is below one rounding
// error of a float32 probability.
constexpr float kSkipBits = 46;

RowTiles CutIntoTiles(const float* row, size_t vocab_size, std::vector<float>& last_tile) {
  RowTiles tiles;
  tiles.row = row;
  tiles.vocab_size = vocab_size;
  tiles.blocks = (vocab_size + kBlockSize - 1) / kBlockSize;
  tiles.tiles = (tiles.blocks + kTileBlocks - 1) / kTileBlocks;
  if (vocab_size % kBlockSize != 0) {
    const size_t begin = (tiles.tiles - 1) * kTileSize;
    last_tile.resize(kTileSize);
    std::fill(std::copy(row + begin, row + vocab_size, last_tile.begin()), last_tile.end(), kMinusInfinity);
    tiles.last_tile = last_tile.data();
  }
  return tiles;
}

// The block maximum below which a block's weights do not count.
float SkipFloor(float reference, float scale) {
  return std::max(reference - kSkipBits / scale, -kLargest);
}

double Sum(const float* values, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]);
  return sum;
}

RowScan ScanTiles(const ScanRequest& request, const RowTiles& tiles, SamplerScratch& scratch) {
  const Kernels& kernels = *scratch.kernels;
  const float log2e = WeightScale(1);
  RowScan scan;
  scan.tiles = tiles;
  scan.mask = request.mask;
  scratch.maxima.resize(tiles.blocks);
  if (request.mask != nullptr) scratch.masked_maxima.resize(tiles.blocks);
  if (request.log_sum || request.weights) scratch.sums.resize(tiles.blocks);
  scratch.tile_references.resize(tiles.tiles);

  // One exponential serves both sums when they are over the same tokens at the same scale.
  const bool shared =
      request.log_sum && request.weights && request.mask == nullptr && request.scale == log2e;
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
    const float tile_max = *std::max_element(maxima, maxima + blocks);
    scan.max = std::max(scan.max, tile_max);

    const float* allowed_maxima = maxima;
    float allowed_max = tile_max;
    const uint32_t* mask = request.mask == nullptr ? nullptr : request.mask + 2 * first;
    if (mask != nullptr) {
      float* masked = scratch.masked_maxima.data() + first;
      kernels.masked_maxima(tile, mask, blocks, maxima, masked);
      allowed_maxima = masked;
      allowed_max = *std::max_element(masked, masked + blocks);
    }
    scan.masked_max = std::max(scan.masked_max, allowed_max);

    float* sums = scratch.sums.data() + first;
    if (request.log_sum && !shared && tile_max > kMinusInfinity) {
      if (tile_max > raw_reference) {
        raw_sum *= std::exp(static_cast<double>(raw_reference) - static_cast<double>(tile_max));
        raw_reference = tile_max;
      }
      kernels.block_sums(tile, nullptr, blocks, maxima, raw_reference, log2e,
                         SkipFloor(raw_reference, log2e), sums);
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
  return static_cast<float>(
      std::min(kLog2E / static_cast<double>(temperature), static_cast<double>(kLargest)));
}

RowScan ScanRow(const ScanRequest& request, SamplerScratch& scratch) {
  RowScan scan =
      ScanTiles(request, CutIntoTiles(request.row, request.vocab_size, scratch.last_tile), scratch);
  if (scan.has_nan || scan.max <= kLargest) return scan;

  scratch.finite_row.resize(request.vocab_size);
  std::transform(request.row, request.row + request.vocab_size, scratch.finite_row.begin(),
                 [](float logit) { return std::min(logit, kLargest); });
  ScanRequest finite = request;
  finite.row = scratch.finite_row.data();
  return ScanTiles(finite, CutIntoTiles(finite.row, finite.vocab_size, scratch.last_tile), scratch);
}

float LowerBoundOfBest(size_t k, const float* maxima, size_t count, const SamplerScratch::Adjusted* extra,
                       size_t extra_count, std::vector<float>& heap) {
  if (k == 0 || k > count + extra_count) return kMinusInfinity;
  heap.clear();
  if (k > 256) {
    heap.assign(maxima, maxima + count);
    for (size_t i = 0; i < extra_count; ++i) heap.push_back(extra[i].value);
    std::nth_element(heap.begin(), heap.begin() + (k - 1), heap.end(), std::greater<>());
    return heap[k - 1];
  }
  // A heap of the k largest so far, the smallest of them on top.
  const auto offer = [&](float value) {
    if (heap.size() < k) {
      heap.push_back(value);
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    } else if (value > heap.front()) {
      std::pop_heap(heap.begin(), heap.end(), std::greater<>());
      heap.back() = value;
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
  };
  for (size_t i = 0; i < count; ++i) offer(maxima[i]);
  for (size_t i = 0; i < extra_count; ++i) offer(extra[i].value);
  return heap.front();
}

void CollectAtLeast(const RowScan& scan, const uint32_t* mask, const float* maxima, float threshold,
                    const Kernels& kernels, Candidates& candidates) {
  const RowTiles& tiles = scan.tiles;
  size_t capacity = 0;
  for (size_t b = 0; b < tiles.blocks; ++b) capacity += maxima[b] >= threshold ? kBlockSize : 0;
  if (candidates.ids.size() < capacity) {
    candidates.ids.resize(capacity);
    candidates.values.resize(capacity);
  }
  size_t count = 0;
  for (size_t t = 0; t < tiles.tiles; ++t) {
    const size_t first = tiles.FirstBlock(t);
    count += kernels.collect(tiles.Tile(t), mask == nullptr ? nullptr : mask + 2 * first, tiles.BlockCount(t),
                             maxima + first, threshold, static_cast<int32_t>(first * kBlockSize),
                             candidates.ids.data() + count, candidates.values.data() + count);
  }
  while (count > 0 && static_cast<size_t>(candidates.ids[count - 1]) >= tiles.vocab_size) --count;  // padding
  candidates.count = count;
}

}  // namespace onpolicy
