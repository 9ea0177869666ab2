// Tokens of a vocabulary -> what they have between quotation marks: whole keys, or the ends of keys.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace onpolicy::grammar {

// Calls `visit` with the text between each quotation mark and the next.
template <typename Visit>
void ForEachQuoted(std::string_view text, Visit visit) {
  size_t open = text.find('"');
  if (open == std::string_view::npos) return;
  for (size_t close; (close = text.find('"', open + 1)) != std::string_view::npos; open = close)
    visit(text.substr(open + 1, close - open - 1));
}

enum class QuotedKind : uint8_t {
  kNone,
  kKey,      // one plain string, which can only be a key of the object that the text is in
  kStrings,  // plain strings, all different
  kEnd,      // begins within a string, and has too few quotation marks for another one after it
  kUnsure,   // a spelling with escapes, or no string or one twice: what it repeats cannot be looked up
};

class QuotedTokens {
 public:
  // By the hash of a string.
  using Entry = std::pair<size_t, uint32_t>;

  static size_t HashOf(std::string_view text) { return std::hash<std::string_view>()(text); }

  explicit QuotedTokens(uint32_t vocabulary_size) : kinds_(vocabulary_size) {}
  // Called for tokens with a quotation mark, then Finish.
  void Add(uint32_t token, std::string_view bytes);
  void Finish();

  QuotedKind KindOf(uint32_t token) const { return kinds_[token]; }
  // Tokens of kind kKey with a key, and of kind kStrings with a string, of the hash of this one.
  std::span<const Entry> WithKey(std::string_view key) const { return Equal(keys_, HashOf(key)); }
  std::span<const Entry> WithString(size_t hash) const { return Equal(strings_, hash); }
  // Tokens that have this before their first quotation mark.
  std::span<const Entry> WithEnd(std::string_view end) const { return Equal(ends_, HashOf(end)); }
  // Tokens that have a backslash before their last quotation mark.
  const std::vector<uint32_t>& escaped() const { return escaped_; }
  size_t memory_bytes() const {
    return kinds_.capacity() + (keys_.capacity() + strings_.capacity() + ends_.capacity()) * sizeof(Entry) +
           escaped_.capacity() * sizeof(uint32_t);
  }

 private:
  static std::span<const Entry> Equal(const std::vector<Entry>& entries, size_t hash);

  std::vector<QuotedKind> kinds_;  // (tokens)
  std::vector<Entry> keys_, strings_, ends_;
  std::vector<uint32_t> escaped_;
};

}  // namespace onpolicy::grammar
