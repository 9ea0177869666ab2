// Texts that an output must not hold -> at each step, the tokens that would complete one. How a text is spelled in tokens
// does not matter: an Aho-Corasick automaton follows the bytes of the output.
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

// What each token adds to the text. Immutable, shared by all plans of a vocabulary.
class TokenTexts {
 public:
  // A range of places in the order of the texts.
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
  // The places of all tokens whose text begins with `prefix`.
  Range BeginningWith(std::string_view prefix) const;
  int32_t At(uint32_t place) const { return sorted_[place]; }

 private:
  std::string bytes_;
  std::vector<uint32_t> offsets_;
  std::vector<int32_t> sorted_;  // (tokens) by text
};

class BadTexts {
 public:
  // None of `texts` is empty.
  BadTexts(std::shared_ptr<const TokenTexts> tokens, std::vector<std::string> texts);

  // The state behind a token; 0 is that of an empty output.
  uint32_t After(uint32_t state, int32_t token) const;

  // Whether a text ends within a token. Moves `state` behind it.
  bool EndsIn(int32_t token, uint32_t* state) const;

  // Tokens that hold a whole text.
  const std::vector<int32_t>& always() const { return always_; }

  // Calls `ban` with each token that completes a text begun in the output.
  template <class Ban>
  void ForEachCompletion(uint32_t state, Ban ban) const {
    for (uint32_t node = state; node != 0; node = nodes_[node].shorter)
      for (const TokenTexts::Range& range : nodes_[node].completions)
        for (uint32_t place = range.from; place < range.to; ++place) ban(tokens_->At(place));
  }

 private:
  // The output ends with these bytes of a text's beginning.
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
  std::array<uint32_t, 256> first_{};  // by byte: the node behind state 0, where most bytes of a vocabulary are read
  std::vector<int32_t> always_;
};

}  // namespace onpolicy
