// Tokens in which an item of an array without repetitions ends or begins: a mask takes it for new, and where it may not be,
// they are looked at with the text.
#include <algorithm>

#include "json/text.h"
#include "mask/constraint.h"

namespace onpolicy::grammar {

static constexpr const char* kBlanks = " \t\n\r";

static bool IsNumberByte(char c) { return c == '-' || (c >= '0' && c <= '9'); }

std::vector<ItemToken> Constraint::SortItemTokens(std::vector<ItemToken> tokens) {
  std::sort(tokens.begin(), tokens.end());
  std::vector<ItemToken> result;
  for (const ItemToken& entry : tokens) {
    if (result.empty() || result.back().token != entry.token) {
      result.push_back(entry);
    } else if (result.back().rest != entry.rest) {
      result.back().rest = kAnyRest;
    }
  }
  return result;
}

// Whether an item that begins like this, or the whole of it, could be the value.
static bool MayBe(std::string_view value, std::string_view begin) {
  if (IsNumberByte(value[0])) return IsNumberByte(begin[0]);
  if (value[0] != begin[0] || value[0] != '"') return value[0] == begin[0];
  const bool is_plain = value.find('\\') == std::string_view::npos && begin.find('\\') == std::string_view::npos;
  return !is_plain || value.starts_with(begin) || begin.starts_with(value);
}

void Constraint::RemoveRepeatedItems(StateId state, const Mask& found, std::string& text, uint32_t* mask) {
  const size_t base = text.size();
  const auto may_repeat = [&](std::string_view bytes, uint32_t rest) {
    if (rest == kAnyRest) return true;
    text += bytes.substr(0, bytes.size() - rest - 1);
    const size_t end = text.find_last_not_of(kBlanks) + 1, start = FindValueStart(text, end);
    const size_t begin = bytes.find_first_not_of(kBlanks, bytes.size() - rest);
    const bool may_be = start == std::string::npos ||
                        MayBe(std::string_view(text).substr(start, end - start), bytes.substr(begin));
    text.resize(base);
    return may_be;
  };
  for (const auto& [token, rest] : found.items) {
    if (!((mask[token >> 5] >> (token & 31)) & 1)) continue;
    const std::string_view bytes = vocabulary_->Bytes(token);
    if (may_repeat(bytes, rest) && FollowAll(state, bytes, text) == kDeadState) mask[token >> 5] &= ~(1u << (token & 31));
  }
}

}  // namespace onpolicy::grammar
