// Sorts tokens by the keys that they may repeat, and finds them by hash.
#include "grammar/mask/quoted-tokens.h"

#include <algorithm>

namespace onpolicy::grammar {

void QuotedTokens::Add(uint32_t token, std::string_view bytes) {
  const size_t open = bytes.find('"'), close = bytes.rfind('"');
  const auto quotes = std::count(bytes.begin(), bytes.end(), '"');
  ends_.emplace_back(HashOf(bytes.substr(0, open)), token);
  if (bytes.find('\\') < close) escaped_.push_back(token);
  // Backslashes occur in strings only.
  if (bytes.find('\\') < open && quotes < 3) {
    kinds_[token] = QuotedKind::kEnd;
    return;
  }
  // With two quotation marks, the key is between them and belongs to the object that the text is in.
  const bool is_key = quotes == 2 && bytes.find_first_of("{}[]\\") == std::string_view::npos;
  kinds_[token] = is_key ? QuotedKind::kKey : QuotedKind::kUnsure;
  if (is_key) keys_.emplace_back(HashOf(bytes.substr(open + 1, close - open - 1)), token);
}

void QuotedTokens::Finish() {
  for (std::vector<Entry>* entries : {&keys_, &ends_}) {
    std::sort(entries->begin(), entries->end());
    entries->shrink_to_fit();
  }
}

std::span<const QuotedTokens::Entry> QuotedTokens::Equal(const std::vector<Entry>& entries, size_t hash) {
  const auto by_hash = [](const Entry& a, const Entry& b) { return a.first < b.first; };
  const auto [begin, end] = std::equal_range(entries.begin(), entries.end(), Entry{hash, 0}, by_hash);
  return {begin, end};
}

}  // namespace onpolicy::grammar
