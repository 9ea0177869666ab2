// A packed row of tokens -> the tokens that each token sees, as blocks of queries with a few ranges of keys.
#pragma once
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "trainer/weights/shape.h"

namespace onpolicy::training {

// Stands for each expert of a token and layer if the router chooses them.
constexpr int32_t kOwnChoice = -1;

// Token i sees itself and each earlier token j of its own group or of its parent group.
struct PackedRow {
  std::vector<int32_t> tokens, positions, group_ids, parent_ids;  // (row)
  std::vector<int32_t> logit_rows;                                // (targets) token whose output predicts
  std::vector<int32_t> target_tokens;                             // (targets) token that is predicted
  std::vector<float> temperatures;  // (targets) that logits are divided by; empty: 1
  // (row, layers with experts, used) experts of tokens in place of the router's choice, or kOwnChoice; empty: the router chooses all.
  std::vector<int32_t> experts;

  int64_t size() const { return static_cast<int64_t>(tokens.size()); }
  int64_t targets() const { return static_cast<int64_t>(target_tokens.size()); }

  // (kPositions, row) positions of a text for rotations with sections: those of the row three times, then 0.
  std::vector<int32_t> AllPositions() const;
  void Check(const Shape& shape) const;
  // Adds tokens that see only themselves, until the size is a multiple of `multiple`.
  void Pad(int64_t multiple);

 private:
  void CheckExperts(const Shape& shape) const;
};

// Returns true if both tokens have the same group and the same parent.
bool AreAlike(const PackedRow& row, int64_t i, int64_t j);

// Returns true if token i sees token j.
bool Sees(const PackedRow& row, int64_t i, int64_t j);

struct KeyRange {
  int64_t start, count;
};

struct QueryBlock {
  int64_t start, count;
  std::vector<KeyRange> keys;  // kMaxRanges at most
  int64_t key_count = 0;
  size_t mask_offset = 0;  // of its (key_count, count) mask, in values
};

struct AttentionPlan {
  std::vector<QueryBlock> blocks;
  size_t mask_values = 0;       // of all masks: those of layers with a window follow the others
  size_t first_local_mask = 0;
};

// Rows are padded to this, and key ranges aligned to it: the matrix kernels work on multiples of it.
constexpr int64_t kRowMultiple = 32;

// Maximum number of queries of a block. Long sequences get wide matmuls; for short ones, small blocks multiply fewer masked keys.
constexpr int64_t kBlockQueries = 128, kShortBlockQueries = 64;

// A graph has nodes for each range of each block. Further ranges are joined over the smallest gaps, whose keys are masked.
constexpr size_t kMaxRanges = 4;

// `window` is the number of positions that layers with a window see, including their own, or 0 if there are no such layers.
AttentionPlan PlanAttention(const PackedRow& row, int64_t window, int64_t most_queries = kBlockQueries);

// Returns masks as 16-bit floats: 0 if a token is seen, otherwise -infinity.
std::vector<uint16_t> MasksOf(const PackedRow& row, int64_t window, const AttentionPlan& plan);

}  // namespace onpolicy::training
