// The scanner: member by member to the left.
#include "json/text.h"

#include <algorithm>

#include "json/value.h"

namespace onpolicy::grammar {

namespace {

bool IsBlank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Where the blanks before `end` begin.
size_t BlanksStart(std::string_view text, size_t end) {
  while (end > 0 && IsBlank(text[end - 1])) end--;
  return end;
}

// Start of the string whose closing quote is at `close`.
size_t StringStart(std::string_view text, size_t close) {
  for (size_t at = close; at-- > 0;) {
    if (text[at] != '"') continue;
    size_t slashes = 0;
    while (slashes < at && text[at - 1 - slashes] == '\\') slashes++;
    if (slashes % 2 == 0) return at;
  }
  return std::string_view::npos;
}

}  // namespace

size_t FindValueStart(std::string_view text, size_t end) {
  end = BlanksStart(text, end);
  if (end == 0) return std::string_view::npos;
  const char last = text[end - 1];
  if (last == '"') return StringStart(text, end - 1);
  if (last == '}' || last == ']') {
    size_t depth = 0;
    for (size_t at = end; at-- > 0;) {
      const char c = text[at];
      if (c == '"') {
        at = StringStart(text, at);
        if (at == std::string_view::npos) return at;
      } else if (c == '}' || c == ']') {
        depth++;
      } else if (c == '{' || c == '[') {
        if (--depth == 0) return at;
      }
    }
    return std::string_view::npos;
  }
  size_t at = end;
  while (at > 0 && !IsBlank(text[at - 1]) && std::string_view(",:[{").find(text[at - 1]) == std::string_view::npos) at--;
  return at;
}

// The spelling of the key of the member whose value reaches up to `end`; empty outside of objects.
static std::string_view MemberKey(std::string_view text, size_t end) {
  size_t at = FindValueStart(text, end);
  if (at == std::string_view::npos) return {};
  at = BlanksStart(text, at);
  if (at == 0 || text[at - 1] != ':') return {};
  at = BlanksStart(text, at - 1);
  const size_t start = at > 0 && text[at - 1] == '"' ? StringStart(text, at - 1) : std::string_view::npos;
  return start == std::string_view::npos ? std::string_view() : text.substr(start, at - start);
}

bool FindMemberKey(std::string_view text, std::string* key) {
  const std::string_view spelling = MemberKey(text, text.size());
  if (spelling.empty()) return false;
  JsonError error;
  *key = ParseJson(spelling, &error).text;
  return error.message.empty();
}

size_t FindOpenString(std::string_view text) { return StringStart(text, text.size()); }

// Calls `visit` with the spelling of each key that stands to the left of `open` in the same object, until it returns false.
template <typename Visit>
static void ForEachKeyBefore(std::string_view text, size_t open, Visit visit) {
  // Member by member to the left, until the brace that opens the object.
  for (size_t at = BlanksStart(text, open); at > 0 && text[at - 1] == ','; at = BlanksStart(text, at)) {
    const std::string_view spelling = MemberKey(text, at - 1);
    if (spelling.empty() || !visit(spelling)) return;
    at = static_cast<size_t>(spelling.data() - text.data());
  }
}

// Whether a spelling is its text between quotation marks.
static bool IsPlain(std::string_view spelling) {
  return std::none_of(spelling.begin(), spelling.end(), [](char c) { return c == '\\' || static_cast<uint8_t>(c) < 0x20; });
}

static std::string KeyOf(std::string_view spelling) {
  if (IsPlain(spelling)) return std::string(spelling.substr(1, spelling.size() - 2));
  JsonError error;
  return ParseJson(spelling, &error).text;
}

std::vector<std::string> KeysBefore(std::string_view text, size_t open) {
  std::vector<std::string> keys;
  ForEachKeyBefore(text, open, [&](std::string_view spelling) {
    keys.push_back(KeyOf(spelling));
    return true;
  });
  return keys;
}

std::vector<std::string> KeysSoFar(std::string_view text) {
  const size_t end = BlanksStart(text, text.size());
  if (end == 0 || text[end - 1] == ',' || text[end - 1] == '{') return KeysBefore(text, end);
  // A key, or a value that has one.
  std::string_view last = MemberKey(text, end);
  if (last.empty()) {
    const size_t start = FindValueStart(text, end);
    if (start == std::string_view::npos || start == end || text[start] != '"') return {};
    last = text.substr(start, end - start);
  }
  std::vector<std::string> keys = KeysBefore(text, static_cast<size_t>(last.data() - text.data()));
  keys.push_back(KeyOf(last));
  return keys;
}

// Offset of the opening quote of the string whose closing quote ends `text`, or npos.
static size_t LastStringStart(std::string_view text) {
  return text.empty() ? std::string_view::npos : StringStart(text, text.size() - 1);
}

bool EndsWithKey(std::string_view text, const std::vector<std::string>& keys) {
  const size_t open = LastStringStart(text);
  return open != std::string_view::npos && std::binary_search(keys.begin(), keys.end(), KeyOf(text.substr(open)));
}

bool RepeatsKey(std::string_view text) {
  const size_t open = LastStringStart(text);
  if (open == std::string_view::npos) return false;
  const std::string_view last = text.substr(open);
  const bool is_plain = IsPlain(last);
  bool repeats = false;
  ForEachKeyBefore(text, open, [&](std::string_view spelling) {
    repeats = spelling == last || (!(is_plain && IsPlain(spelling)) && KeyOf(spelling) == KeyOf(last));
    return !repeats;
  });
  return repeats;
}

std::string JsonSpelling(uint8_t byte) {
  const char character = static_cast<char>(byte);
  if (byte == '"' || byte == '\\') return {'\\', character};
  if (byte >= 0x20) return {character};
  const char* digits = "0123456789abcdef";
  return {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]};
}

}  // namespace onpolicy::grammar
