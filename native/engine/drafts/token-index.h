// Tokens, appended one by one -> places at which the last tokens of a text occur, and the last token written in a state of a grammar.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace onpolicy {

// Maximum memory of a token if vectors have twice the needed capacity: the token, its link and up to two buckets; and memory of an entry of
// `in_state_`.
constexpr size_t kBytesPerToken = 6 * sizeof(int32_t);
constexpr size_t kBytesPerState = 48;

// Separator of texts. A match never contains it.
constexpr int32_t kNoToken = -1;
// State of a text without a grammar.
constexpr uint64_t kNoState = 0;

class TokenIndex {
 public:
  // `min_match`: minimum length of a match, at least 1.
  explicit TokenIndex(size_t min_match) : min_match_(min_match) {}

  // `state`: the grammar's state before the token.
  void Append(int32_t token, uint64_t state = kNoState);

  // A match: `length` tokens end before the place `next`.
  struct Match {
    size_t length = 0;  // 0: no match
    size_t next = 0;
  };

  // Returns the longest match of the last tokens of `text` (count); among equals the one nearest to `near`. Ignores a match at the end of
  // this index, which nothing follows. Visits a limited number of places.
  Match Find(const int32_t* text, size_t count, size_t near) const;

  // Returns the place where a token was last written in a state, with length 1, or an empty match.
  Match FindState(uint64_t state) const;

  const std::vector<int32_t>& tokens() const { return tokens_; }
  size_t bytes() const;
  // Upper limit of `bytes` for the stored tokens and states, before vectors and tables grow.
  size_t cost() const { return tokens_.size() * kBytesPerToken + in_state_.size() * kBytesPerState; }

 private:
  // Returns the bucket of the `min_match_` tokens before `end`, or -1 if they include a separator.
  int64_t Bucket(const int32_t* end) const;
  // Adds the next place to its bucket.
  void Enter();

  const size_t min_match_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> before_;  // (tokens) the place before in the same bucket, counted from 1; 0: none
  std::vector<int32_t> last_;    // (buckets, a power of two) the last place, counted from 1; 0: none
  std::unordered_map<uint64_t, int32_t> in_state_;  // the last place of a token that was written in a state
};

}  // namespace onpolicy
