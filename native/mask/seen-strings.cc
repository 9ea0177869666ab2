// From one quotation mark to the next, whichever of them open strings.
#include "mask/seen-strings.h"

#include <algorithm>

namespace onpolicy::grammar {

void SeenStrings::Read(std::string_view text, const QuotedTokens& quoted) {
  // The last quotation mark that was read may open a string, and the last byte an escape.
  const size_t open = read_ == 0 ? std::string_view::npos : text.rfind('"', read_ - 1);
  const size_t from = open == std::string_view::npos ? 0 : open;
  ForEachQuoted(text.substr(from), [&](std::string_view string) {
    const size_t hash = QuotedTokens::HashOf(string);
    if (quoted.WithString(hash).empty() || std::find(hashes_.begin(), hashes_.end(), hash) != hashes_.end()) return;
    hashes_.push_back(hash);
    ends_.push_back(static_cast<size_t>(string.data() - text.data()) + string.size() + 1);
  });
  for (size_t at = read_ == 0 ? 0 : read_ - 1; escape_end_ == 0 && at + 1 < text.size(); at++)
    if (text[at] == '\\' && (text[at + 1] == 'u' || text[at + 1] == '/')) escape_end_ = at + 2;
  read_ = text.size();
}

void SeenStrings::Cut(size_t size) {
  read_ = std::min(read_, size);
  if (escape_end_ > size) escape_end_ = 0;
  while (!ends_.empty() && ends_.back() > size) {
    ends_.pop_back();
    hashes_.pop_back();
  }
}

}  // namespace onpolicy::grammar
