// Finished answers -> drafts for texts that continue like one of them. Bounded: old answers give way to new ones.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "drafts/token-index.h"

namespace onpolicy {

// Every function locks: answers are added while steps look for drafts.
class AnswerIndex {
 public:
  // Takes at most `max_bytes` of memory.
  AnswerIndex(size_t min_match, size_t max_bytes);

  // `states` (count) or empty: the grammar's when each token was written.
  void Add(const int32_t* tokens, size_t count, const std::vector<uint64_t>& states);

  // Appends what followed the longest match of `text` (count) to `draft`, at most `limit` tokens. Returns the length of
  // the match, 0 when there is none longer than `longer_than`.
  size_t Draft(const int32_t* text, size_t count, size_t longer_than, size_t limit, std::vector<int32_t>* draft) const;

  // The same with what was last written in a state. Returns whether anything was.
  bool DraftInState(uint64_t state, size_t limit, std::vector<int32_t>* draft) const;

  size_t bytes() const;

 private:
  const size_t min_match_;
  const size_t half_bytes_;
  mutable std::mutex mutex_;
  // When the new half is full, it becomes the old one, and the old one is dropped.
  std::unique_ptr<TokenIndex> new_, old_;
};

}  // namespace onpolicy
