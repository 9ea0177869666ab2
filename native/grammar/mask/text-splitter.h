// Forced text -> the tokens with which a model's tokenizer encodes it behind the tokens of an answer.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/text-tokenizer.h"

namespace onpolicy::grammar {

class Vocabulary;

// Shared by all matchers on a vocabulary.
class TextSplitter {
 public:
  // `vocabulary` must outlive this.
  TextSplitter(const Vocabulary& vocabulary, std::shared_ptr<const TextTokenizer> tokenizer)
      : vocabulary_(vocabulary), tokenizer_(std::move(tokenizer)) {}

  // Appends the tokens of a text inside a longer one. Returns false, and leaves the list unchanged, if the tokenizer changes the bytes or
  // cannot encode the text.
  bool Split(std::string_view text, std::vector<uint32_t>* tokens);
  // Returns the first tokens of `forced` behind the tokens `before`: those that stay the same whatever follows. `ends`: nothing follows.
  // Returns an empty list if the tokenizer would not have produced the last tokens of `before` with the forced text behind them.
  std::vector<uint32_t> SplitForced(std::span<const uint32_t> before, std::string_view forced, bool ends);

 private:
  // Finds a text to put before others so that the tokenizer adds no space to them. Its tokens are `lead_tokens_`.
  void FindLead();
  bool SplitBehindLead(std::string_view text, std::vector<uint32_t>* tokens);
  std::vector<uint32_t> Compute(std::span<const uint32_t> before, std::string_view forced, bool ends);
  // Returns how many tokens of a text stay the same whatever follows. The first `context` bytes are fixed.
  size_t CountStable(const std::string& text, size_t context, const std::vector<uint32_t>& tokens);
  // Adds the places up to `at` at which the tokens before a token that begins at `at` end between two characters.
  void AddCuts(std::string_view text, size_t context, size_t at, std::set<size_t>* cuts) const;

  const Vocabulary& vocabulary_;
  const std::shared_ptr<const TextTokenizer> tokenizer_;
  std::once_flag lead_flag_;
  std::string lead_;
  std::vector<uint32_t> lead_tokens_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::vector<uint32_t>> known_;  // by tokens before, text and whether it ends
};

}  // namespace onpolicy::grammar
