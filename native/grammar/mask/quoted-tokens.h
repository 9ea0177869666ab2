// Tokens of a vocabulary -> the text that they have between quotation marks: whole keys, or the ends of keys.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace onpolicy::grammar {

enum class QuotedKind : uint8_t {
  kNone,
  kKey,     // one plain string, which can only be a key of the object that the text is in
  kEnd,     // begins inside a string, and has too few quotation marks for a second string
  kUnsure,  // any other token: the text that it repeats cannot be looked up
};

class QuotedTokens {
 public:
  // By the hash of a string.
  using Entry = std::pair<size_t, uint32_t>;

  explicit QuotedTokens(uint32_t vocabulary_size) : kinds_(vocabulary_size) {}
  // Call it for each token with a quotation mark, then call Finish.
  void Add(uint32_t token, std::string_view bytes);
  void Finish();

  QuotedKind KindOf(uint32_t token) const { return kinds_[token]; }
  // Returns the tokens of kind kKey whose key has the same hash as this one.
  std::span<const Entry> WithKey(std::string_view key) const { return Equal(keys_, HashOf(key)); }
  // Returns the tokens whose text before their first quotation mark has the same hash as this one.
  std::span<const Entry> WithEnd(std::string_view end) const { return Equal(ends_, HashOf(end)); }
  // All tokens of kind kKey, and all that have a quotation mark.
  const std::vector<Entry>& keys() const { return keys_; }
  const std::vector<Entry>& ends() const { return ends_; }
  // Tokens that have a backslash before their last quotation mark.
  const std::vector<uint32_t>& escaped() const { return escaped_; }
  size_t memory_bytes() const {
    return kinds_.capacity() + (keys_.capacity() + ends_.capacity()) * sizeof(Entry) +
           escaped_.capacity() * sizeof(uint32_t);
  }

 private:
  static size_t HashOf(std::string_view text) { return std::hash<std::string_view>()(text); }
  static std::span<const Entry> Equal(const std::vector<Entry>& entries, size_t hash);

  std::vector<QuotedKind> kinds_;  // (tokens)
  std::vector<Entry> keys_, ends_;
  std::vector<uint32_t> escaped_;
};

}  // namespace onpolicy::grammar
