// The tokens of a model -> byte tries, split into slices of similar tokens, which an automaton state may allow as a whole. Immutable once
// created; shared by every constraint on the model.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/mask/quoted-tokens.h"
#include "grammar/mask/text-splitter.h"
#include "grammar/mask/token-trie.h"

namespace onpolicy::grammar {

// Alphabets of the slices. A text that ends inside a code point is kUnicode. kOther: has a character that a JSON string must escape, or a
// malformed code point.
enum class SliceClass : uint8_t { kLowercase, kIdentifier, kPrintable, kUnicode, kOther };
constexpr unsigned kSliceClasses = 4;
constexpr unsigned kAsciiClasses = 3;
// Ranges of bytes that patterns rarely distinguish; the first byte represents all.
constexpr uint8_t kAlikeFirst[] = {'a', 'A', '0'}, kAlikeLast[] = {'z', 'Z', '9'};
// A mask with more single tokens than this is stored as bits.
constexpr size_t kDenseTokens = 250;
constexpr unsigned kSliceLengths[] = {4, 10, 30, 0xFFFF};  // maximum number of code points
constexpr size_t kShortBytes = 16;                         // longer tokens have separate slices

struct Slice : TokenTrie {
  SliceClass kind = SliceClass::kOther;
  unsigned max_length = 0;  // in code points
  bool is_long = false;     // holds tokens of more than kShortBytes
  ByteSet first_bytes;
  std::array<uint32_t, 256> roots{};  // the node of depth 1 by its byte
  std::vector<uint32_t> mask;         // (mask_words)
  std::vector<uint8_t> lengths;       // code points of an alphabet's tokens, at most 255
};

class TerminalMaskTable;

class Vocabulary {
 public:
  // `tokens[i]` are the true bytes of token i. Special tokens are never part of text; end-of-sequence tokens end it. `tokenizer` splits
  // texts into these tokens; null if it is unknown how the model does that.
  Vocabulary(std::vector<std::string> tokens, std::vector<uint32_t> eos_tokens, std::vector<uint32_t> special_tokens,
             std::shared_ptr<const TextTokenizer> tokenizer);

  uint32_t size() const { return static_cast<uint32_t>(offsets_.size() - 1); }
  uint32_t mask_words() const { return (size() + 31) / 32; }
  // Maximum over text tokens.
  size_t max_token_bytes() const { return max_token_bytes_; }
  std::string_view Bytes(uint32_t token) const {
    return std::string_view(bytes_).substr(offsets_[token], offsets_[token + 1] - offsets_[token]);
  }
  bool IsSpecial(uint32_t token) const { return special_[token]; }
  bool IsEos(uint32_t token) const;
  const std::vector<uint32_t>& eos_tokens() const { return eos_tokens_; }
  const std::vector<Slice>& slices() const { return slices_; }
  // Returns the trie of an ASCII alphabet's short tokens, with each byte replaced by the one that represents it (kAlikeFirst): some
  // thousands of nodes. Root 0.
  const TokenTrie& AlikeTokens(SliceClass kind) const { return alike_tokens_[static_cast<size_t>(kind)]; }
  // The special token with exactly this text, or -1.
  int64_t FindSpecial(std::string_view text) const;
  // Splits bytes into tokens as inside a longer text. Without a tokenizer, and for bytes that it cannot encode, takes the longest token
  // first.
  std::vector<uint32_t> Tokenize(std::string_view text) const;
  // Splits texts as the model does; null if that is unknown.
  TextSplitter* splitter() const { return splitter_.get(); }
  // Text tokens that contain a quotation mark.
  const std::vector<uint32_t>& quote_tokens() const { return quote_tokens_; }
  const QuotedTokens& quoted_tokens() const { return quoted_tokens_; }
  // Returns true if a text token has exactly this text.
  bool HasToken(std::string_view text) const { return Find(text) >= 0; }
  // Returns true if some token starts with `prefix` and is longer.
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
  // Terminal masks, shared by all constraints on the vocabulary.
  TerminalMaskTable& terminal_masks() const { return *terminal_masks_; }
  size_t memory_bytes() const;

 private:
  int64_t Find(std::string_view text) const;
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
  std::unique_ptr<TextSplitter> splitter_;
  mutable std::mutex union_mutex_;
  mutable std::map<uint32_t, std::vector<uint32_t>> unions_;
  mutable std::map<unsigned, std::vector<uint32_t>> up_to_length_;
  std::shared_ptr<TerminalMaskTable> terminal_masks_;
};

}  // namespace onpolicy::grammar
