// One row of logits -> its maximum, its log-sum, block maxima and block weights, in one pass over memory.
#pragma once
#include <cstdint>
#include <limits>

#include "sampler/sampler-scratch.h"

namespace onpolicy {

inline constexpr size_t kTileBlocks = 32;  // a tile stays in the first-level cache between its kernels
inline constexpr size_t kTileSize = kTileBlocks * kBlockSize;

// A row cut into tiles. If the length of the row is not a multiple of a block, its end is in a copy padded with -infinity.
struct RowTiles {
  const float* row = nullptr;        // (vocab)
  const float* last_tile = nullptr;  // null: the row itself ends on a block
  size_t vocab_size = 0;
  size_t blocks = 0;
  size_t tiles = 0;

  size_t FirstBlock(size_t tile) const { return tile * kTileBlocks; }
  size_t BlockCount(size_t tile) const { return tile + 1 < tiles ? kTileBlocks : blocks - FirstBlock(tile); }
  const float* Tile(size_t tile) const {
    return tile + 1 == tiles && last_tile != nullptr ? last_tile : row + tile * kTileSize;
  }
  const float* Block(size_t block) const {
    return Tile(block / kTileBlocks) + block % kTileBlocks * kBlockSize;
  }
};

struct ScanRequest {
  const float* row;  // (vocab)
  size_t vocab_size;
  const uint32_t* mask = nullptr;  // (2 * blocks) or null: all tokens allowed
  bool log_sum = false;            // of the raw logits
  bool weights = false;            // of the allowed logits, into scratch.sums and scratch.tile_references
  float scale = 1;                 // weight = 2^((logit - reference) * scale)
  float reference = -std::numeric_limits<float>::infinity();  // lower bound of every tile's reference
};

struct RowScan {
  bool has_nan = false;
  RowTiles tiles;
  const uint32_t* mask = nullptr;
  float max = -std::numeric_limits<float>::infinity();         // of the raw logits
  float masked_max = -std::numeric_limits<float>::infinity();  // of the logits that the mask allows
  double log_sum = 0;  // log of the sum of e^(logit - max) over the raw logits, when asked for

  // Log-softmax of one raw logit.
  float Logprob(float logit) const {
    if (logit == -std::numeric_limits<float>::infinity()) return logit;
    return static_cast<float>(static_cast<double>(logit) - static_cast<double>(max) - log_sum);
  }
};

// (blocks) of the logits that the scan's mask allows.
inline const float* AllowedMaxima(const RowScan& scan, const SamplerScratch& scratch) {
  return scan.mask == nullptr ? scratch.maxima.data() : scratch.masked_maxima.data();
}

// log2(e) / temperature, clamped to the range in which weights are well-defined.
float WeightScale(float temperature);

// Scans a row. +infinity counts as the largest finite number, so that such rows have well-defined probabilities.
RowScan ScanRow(const ScanRequest& request, SamplerScratch& scratch);

// Returns a threshold that the k best tokens reach, and few others. `maxima` (count) and `adjusted` are of different tokens.
// Returns -infinity if there are fewer than k of them. `values` is working memory.
float LowerBoundOfBest(size_t k, const float* maxima, size_t count,
                       const std::vector<AdjustedToken>& adjusted, std::vector<float>& values);

// Writes every allowed token >= threshold, in order of id, to `candidates` (ids and values).
void CollectAtLeast(const RowScan& scan, const uint32_t* mask, const float* maxima, float threshold,
                    const Kernels& kernels, Candidates& candidates);

}  // namespace onpolicy
