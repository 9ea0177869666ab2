// Tokens, appended one by one -> where the last tokens of a text stand in them, and what was written in a state of a grammar.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace onpolicy {

// What a token takes, where vectors may have twice the capacity that they need: itself, its link and up to two buckets; and
// what an entry of `in_state_` takes.
constexpr size_t kBytesPerToken = 6 * sizeof(int32_t);
constexpr size_t kBytesPerState = 48;

// No token: it separates texts, and no match reaches over it.
constexpr int32_t kNoToken = -1;
// Not under a grammar.
constexpr uint64_t kNoState = 0;

class TokenIndex {
 public:
  // Matches have at least `min_match` tokens, which is at least 1.
  explicit TokenIndex(size_t min_match) : min_match_(min_match) {}

  // `state`: the grammar's when the token was written.
  void Append(int32_t token, uint64_t state = kNoState);

  // A match: `length` tokens end before the place `next`.
  struct Match {
    size_t length = 0;  // 0: there is none
    size_t next = 0;
  };

  // The longest match of the last tokens of `text` (count); among equals the one nearest to `near`. A match that ends with the
  // last token of this index does not count: nothing follows it. Looks at a bounded number of places.
  Match Find(const int32_t* text, size_t count, size_t near) const;

  // Where a token was last written in a state. Its length is 0 or 1.
  Match FindState(uint64_t state) const;

  const std::vector<int32_t>& tokens() const { return tokens_; }
  size_t bytes() const;
  // Bytes at most, before vectors and tables have grown.
  size_t cost() const { return tokens_.size() * kBytesPerToken + in_state_.size() * kBytesPerState; }

 private:
  // The bucket of the `min_match_` tokens before `end`; -1 when a separator is among them.
  int64_t Bucket(const int32_t* end) const;
  // Makes the last tokens findable.
  void Enter();

  const size_t min_match_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> before_;  // (tokens) the place before in the same bucket, counted from 1; 0: none
  std::vector<int32_t> last_;    // (buckets, a power of two) the last place, counted from 1; 0: none
  std::unordered_map<uint64_t, int32_t> in_state_;  // the last place of a token that was written in a state
};

}  // namespace onpolicy
