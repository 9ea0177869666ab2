// Finished answers -> drafts for texts that continue like one of them. Its memory is limited: the oldest answers are dropped.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/drafts/token-index.h"

namespace onpolicy {

// All functions lock, because answers are added while steps look for drafts.
class AnswerIndex {
 public:
  // Uses at most `max_bytes` of memory.
  AnswerIndex(size_t min_match, size_t max_bytes);

  // `states` (count) or empty: the grammar's state before each token.
  void Add(const int32_t* tokens, size_t count, const std::vector<uint64_t>& states);

  // Appends the tokens behind the longest match of `text` (count) to `draft`, at most `limit`. Returns the length of the match, or 0 if
  // none is longer than `longer_than`.
  size_t Draft(const int32_t* text, size_t count, size_t longer_than, size_t limit, std::vector<int32_t>* draft) const;

  // Appends the tokens that were last written in a state. Returns false if there are none.
  bool DraftInState(uint64_t state, size_t limit, std::vector<int32_t>* draft) const;

  size_t bytes() const;

 private:
  const size_t min_match_;
  const size_t half_bytes_;
  mutable std::mutex mutex_;
  // When the new half is full, it becomes the old half, and the old one is dropped.
  std::unique_ptr<TokenIndex> new_, old_;
};

}  // namespace onpolicy
