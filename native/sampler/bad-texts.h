// Texts that an output must not contain -> at each step, the tokens that would complete one of them. An Aho-Corasick automaton
// follows the bytes of the output, so any split of a text into tokens is found.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onpolicy {

// The bytes of each token. Immutable, shared by all plans of a vocabulary.
class TokenTexts {
 public:
  // A range of indices of `sorted_`.
  struct Range {
    uint32_t from, to;
  };

  // `offsets` (tokens + 1), ascending, within `bytes`.
  TokenTexts(std::string bytes, std::vector<uint32_t> offsets);

  size_t size() const { return offsets_.size() - 1; }
  std::string_view Of(int32_t token) const {
    const size_t at = static_cast<size_t>(token);
    return std::string_view(bytes_).substr(offsets_[at], offsets_[at + 1] - offsets_[at]);
  }
  // Returns the range of all tokens whose text begins with `prefix`.
  Range BeginningWith(std::string_view prefix) const;
  int32_t At(uint32_t place) const { return sorted_[place]; }

 private:
  std::string bytes_;
  std::vector<uint32_t> offsets_;
  std::vector<int32_t> sorted_;  // (tokens) by text
};

class BadTexts {
 public:
  // Every text must have at least one byte.
  BadTexts(std::shared_ptr<const TokenTexts> tokens, std::vector<std::string> texts);

  // Returns the state after a token. The state of an empty output is 0.
  uint32_t After(uint32_t state, int32_t token) const;

  // Returns true if a text ends within the token. Advances `state` past the token.
  bool EndsIn(int32_t token, uint32_t* state) const;

  // Tokens that contain a whole text.
  const std::vector<int32_t>& always() const { return always_; }

  // Calls `ban` with each token that completes a text begun in the output.
  template <class Ban>
  void ForEachCompletion(uint32_t state, Ban ban) const {
    for (uint32_t node = state; node != 0; node = nodes_[node].shorter)
      for (const TokenTexts::Range& range : nodes_[node].completions)
        for (uint32_t place = range.from; place < range.to; ++place) ban(tokens_->At(place));
  }

 private:
  // A state: the output ends with the beginning of a text.
  struct Node {
    std::map<uint8_t, uint32_t> next;
    std::vector<TokenTexts::Range> completions;
    uint32_t shorter = 0;  // the node of the longest end of these bytes that also begins a text
    bool ends = false;     // these bytes end with a whole text
  };

  void Add(const std::string& text);
  void Link();
  uint32_t Next(uint32_t state, uint8_t byte) const;

  std::shared_ptr<const TokenTexts> tokens_;
  std::vector<Node> nodes_;
  std::array<uint32_t, 256> first_{};  // by byte: the node after state 0, in which most bytes of a vocabulary are read
  std::vector<int32_t> always_;
};

}  // namespace onpolicy
