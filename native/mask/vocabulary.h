// The tokens of a model -> byte tries, split into slices of like tokens, which an automaton state may allow as a whole.
// Immutable once made; shared by every constraint on the model.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "mask/quoted-tokens.h"
#include "mask/token-trie.h"

namespace onpolicy::grammar {

// Alphabets of the slices. A text may end inside a code point, which then is kUnicode. kOther: what a JSON string must
// escape, or a broken code point.
enum class SliceClass : uint8_t { kLowercase, kIdentifier, kPrintable, kUnicode, kOther };
constexpr unsigned kSliceClasses = 4;
constexpr unsigned kAsciiClasses = 3;
// Bytes that patterns rarely tell apart; the first of them stands for all.
constexpr uint8_t kAlikeFirst[] = {'a', 'A', '0'}, kAlikeLast[] = {'z', 'Z', '9'};
// A mask of more single tokens is stored as bits.
constexpr size_t kDenseTokens = 250;
constexpr unsigned kSliceLengths[] = {4, 10, 30, 0xFFFF};  // greatest number of code points
constexpr size_t kShortBytes = 16;                         // longer tokens have slices of their own

struct Slice : TokenTrie {
  SliceClass kind = SliceClass::kOther;
  unsigned max_length = 0;  // in code points
  bool is_long = false;     // holds tokens of more than kShortBytes
  ByteSet first_bytes;
  std::array<uint32_t, 256> roots{};  // the node of depth 1 by its byte
  std::vector<uint32_t> mask;         // (mask_words)
  std::vector<uint8_t> lengths;       // of an alphabet's tokens: code points, at most 255
};

class TerminalMaskTable;

class Vocabulary {
 public:
  // `tokens[i]` are the true bytes of token i. Special tokens are never part of text; end-of-sequence tokens end it.
  Vocabulary(std::vector<std::string> tokens, std::vector<uint32_t> eos_tokens, std::vector<uint32_t> special_tokens,
             bool merges_by_id);

  uint32_t size() const { return static_cast<uint32_t>(offsets_.size() - 1); }
  uint32_t mask_words() const { return (size() + 31) / 32; }
  // Of text tokens.
  size_t max_token_bytes() const { return max_token_bytes_; }
  std::string_view Bytes(uint32_t token) const {
    return std::string_view(bytes_).substr(offsets_[token], offsets_[token + 1] - offsets_[token]);
  }
  bool IsSpecial(uint32_t token) const { return special_[token]; }
  bool IsEos(uint32_t token) const;
  const std::vector<uint32_t>& eos_tokens() const { return eos_tokens_; }
  const std::vector<Slice>& slices() const { return slices_; }
  // The short tokens of an ASCII alphabet, each byte as the one that stands for it (kAlikeFirst): some thousands of nodes. Root 0.
  const TokenTrie& AlikeTokens(SliceClass kind) const { return alike_tokens_[static_cast<size_t>(kind)]; }
  // The special token with exactly this text, or -1.
  int64_t FindSpecial(std::string_view text) const;
  // Splits bytes into tokens: by merges of lowest id first where the vocabulary is of that kind, else longest first.
  std::vector<uint32_t> Tokenize(std::string_view text) const;
  // Text tokens that contain a quotation mark.
  const std::vector<uint32_t>& quote_tokens() const { return quote_tokens_; }
  const QuotedTokens& quoted_tokens() const { return quoted_tokens_; }
  // Whether some token starts with `prefix` and is longer than it.
  bool HasLonger(std::string_view prefix) const;
  // The union of the masks of several slices (a bit each), made once.
  const uint32_t* SliceUnion(uint32_t slices) const;
  // A copy of that union.
  std::vector<uint32_t> SliceBits(uint32_t slices) const {
    const uint32_t* const bits = SliceUnion(slices);
    return {bits, bits + mask_words()};
  }
  // Tokens of the alphabets that have at most so many code points, as bits.
  const uint32_t* UpToLength(unsigned code_points) const;
  // What automaton states say about the tokens, for every constraint on the vocabulary.
  TerminalMaskTable& terminal_masks() const { return *terminal_masks_; }
  size_t memory_bytes() const;

 private:
  int64_t Find(std::string_view text) const;
  std::vector<uint32_t> TokenizeByMerges(std::string_view text) const;
  std::vector<uint32_t> TokenizeByLength(std::string_view text) const;
  size_t LowerBound(std::string_view text) const;
  void BuildSlices();

  std::string bytes_;
  std::vector<uint32_t> offsets_;  // (size + 1)
  std::vector<bool> special_;
  std::vector<uint32_t> eos_tokens_;
  std::vector<uint32_t> sorted_;  // text tokens by their bytes, duplicates by id
  std::vector<uint32_t> quote_tokens_;
  QuotedTokens quoted_tokens_;
  std::vector<Slice> slices_;
  std::array<TokenTrie, kAsciiClasses> alike_tokens_;
  size_t max_token_bytes_ = 0;
  bool merges_by_id_;
  mutable std::mutex union_mutex_;
  mutable std::map<uint32_t, std::vector<uint32_t>> unions_;
  mutable std::map<unsigned, std::vector<uint32_t>> up_to_length_;
  std::shared_ptr<TerminalMaskTable> terminal_masks_;
};

}  // namespace onpolicy::grammar
