// Sorts tokens by what they repeat, and looks them up by its hash.
#include "mask/quoted-tokens.h"

#include <algorithm>

namespace onpolicy::grammar {

void QuotedTokens::Add(uint32_t token, std::string_view bytes) {
  ends_.emplace_back(HashOf(bytes.substr(0, bytes.find('"'))), token);
  if (bytes.find('\\') < bytes.rfind('"')) escaped_.push_back(token);
  std::vector<size_t> hashes;
  ForEachQuoted(bytes, [&](std::string_view string) { hashes.push_back(HashOf(string)); });
  // Backslashes occur in strings only.
  if (bytes.find('\\') < bytes.find('"') && hashes.size() < 2) {
    kinds_[token] = QuotedKind::kEnd;
    return;
  }
  // With two quotation marks, the key is between them and belongs to the object that the text is in.
  if (hashes.size() == 1 && bytes.find_first_of("{}[]\\") == std::string_view::npos) {
    kinds_[token] = QuotedKind::kKey;
    keys_.emplace_back(hashes[0], token);
    return;
  }
  // A repeated key is between quotation marks in the text, or twice in the token, if both spell it without escapes.
  std::sort(hashes.begin(), hashes.end());
  const bool is_unsure = hashes.empty() || bytes.find('\\') != std::string_view::npos ||
                         std::adjacent_find(hashes.begin(), hashes.end()) != hashes.end();
  kinds_[token] = is_unsure ? QuotedKind::kUnsure : QuotedKind::kStrings;
  if (is_unsure) return;
  for (size_t hash : hashes) strings_.emplace_back(hash, token);
}

void QuotedTokens::Finish() {
  for (std::vector<Entry>* entries : {&keys_, &strings_, &ends_}) {
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
