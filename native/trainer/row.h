// A packed row of tokens -> which tokens see which, as blocks of queries with the few ranges of keys that any of them sees.
#pragma once
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "weights/shape.h"

namespace onpolicy::training {

// In place of each expert of a token and layer.
constexpr int32_t kOwnChoice = -1;

// Token i sees itself and each earlier token j of its own group or of its parent group.
struct PackedRow {
  std::vector<int32_t> tokens, positions, group_ids, parent_ids;  // (row)
  std::vector<int32_t> logit_rows;                                // (targets) token whose output predicts
  std::vector<int32_t> target_tokens;                             // (targets) what it predicts
  // (row, layers with experts, used) what tokens take in place of their router's choice, or kOwnChoice; empty: all choose.
  std::vector<int32_t> experts;

  int64_t size() const { return static_cast<int64_t>(tokens.size()); }
  int64_t targets() const { return static_cast<int64_t>(target_tokens.size()); }

  // (kPositions, row) of a text, for rotations with sections: those of the row three times, then 0.
  std::vector<int32_t> AllPositions() const;
  void Check(const Shape& shape) const;
  // Adds tokens that see only themselves, until the size is a multiple of `multiple`.
  void Pad(int64_t multiple);

 private:
  void CheckExperts(const Shape& shape) const;
};

// Whether both tokens are of one group and have one parent.
bool AreAlike(const PackedRow& row, int64_t i, int64_t j);

// Whether token i sees token j.
bool Sees(const PackedRow& row, int64_t i, int64_t j);

struct KeyRange {
  int64_t start, count;
};

struct QueryBlock {
  int64_t start, count;
  std::vector<KeyRange> keys;
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

// Most queries of one block: wide matmuls for long sequences; for short ones, small blocks multiply fewer masked keys.
constexpr int64_t kBlockQueries = 128, kShortBlockQueries = 64;

// `window`: positions that layers with a window see, their own included; 0: there are no such layers.
AttentionPlan PlanAttention(const PackedRow& row, int64_t window, int64_t most_queries = kBlockQueries);

// As 16-bit floats. 0: seen; -infinity: not.
std::vector<uint16_t> MasksOf(const PackedRow& row, int64_t window, const AttentionPlan& plan);

}  // namespace onpolicy::training
