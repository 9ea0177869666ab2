// The vector loops of the sampler, one table per instruction set, chosen once at run time.
// All tables give the same bits: the same operations, and lanes added in one fixed order.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace onpolicy {

// A row is read in blocks of 64 logits. Every `row` below holds whole blocks; `mask` has two words per block.
inline constexpr size_t kBlockSize = 64;

struct Kernels {
  const char* name;

  // row (blocks * 64) -> maxima (blocks). Returns false if the row contains NaN; the maxima are then meaningless.
  bool (*block_maxima)(const float* row, size_t blocks, float* maxima);

  // The maxima over the tokens that `mask` allows; -infinity for a block that allows none.
  void (*masked_maxima)(const float* row, const uint32_t* mask, size_t blocks, const float* maxima,
                        float* masked);

  // sums (blocks) = sum of 2^((logit - reference) * scale) over allowed tokens; `mask` may be null.
  // Blocks whose maximum is below `floor` count as 0; other tokens count as 2^-125 at least. `reference` must
  // not be below any allowed logit.
  void (*block_sums)(const float* row, const uint32_t* mask, size_t blocks, const float* maxima,
                     float reference, float scale, float floor, float* sums);

  // Appends every allowed token >= threshold in order of id; returns how many. `mask` may be null.
  size_t (*collect)(const float* row, const uint32_t* mask, size_t blocks, const float* maxima,
                    float threshold, int32_t first_id, int32_t* ids, float* values);

  // Returns the number of logits >= threshold.
  size_t (*count_at_least)(const float* row, size_t blocks, const float* maxima, float threshold);

  // weights[i] = 2^((values[i] - reference) * scale), 0 below 2^-125. Both arrays have room for `count`
  // rounded up to 16.
  void (*weights)(const float* values, size_t count, float reference, float scale, float* weights);
};

// The fastest table that this processor runs.
const Kernels& BestKernels();

// Every table that this processor runs, the slowest ("scalar") first: for tests.
const std::vector<const Kernels*>& AvailableKernels();

}  // namespace onpolicy
