// The table of ASCII classes, and UTF-8 decoding.
#include "mask/text-class.h"

#include <algorithm>

namespace onpolicy::grammar {

const std::array<TextClasses, 128>& AsciiClasses() {
  static const std::array<TextClasses, 128> classes = [] {
    // Characters that patterns often distinguish; those of a group share a bit.
    static constexpr std::string_view groups[] = {"_", "-",  ".",  "@",  " ",  "/",  ":", "+", ",",  "\"", "\\",
                                                  "'", "()", "[]", "{}", "<",  ">",  "=", "#%&", "!?", ";",  "*$^|`~"};
    std::array<TextClasses, 128> made{};
    for (unsigned c = 0; c < 128; c++) {
      if (c < 0x20) made[c] = 1u << 0;
      if (c == 0x7F) made[c] = 1u << 1;
      if (c >= '0' && c <= '9') made[c] = 1u << 2;
      if (c >= 'a' && c <= 'z') made[c] = c <= 'f' ? 1u << 3 : 1u << 4;
      if (c >= 'A' && c <= 'Z') made[c] = c <= 'F' ? 1u << 5 : 1u << 6;
      for (size_t group = 0; group < std::size(groups); group++)
        if (groups[group].find(static_cast<char>(c)) != std::string_view::npos) made[c] = 1u << (7 + group);
    }
    return made;
  }();
  return classes;
}

size_t CodePointLength(std::string_view text, size_t at) {
  const uint8_t lead = static_cast<uint8_t>(text[at]);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const size_t length = std::min<size_t>(lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2, text.size() - at);
  for (size_t i = 1; i < length; i++)
    if ((static_cast<uint8_t>(text[at + i]) & 0xC0) != 0x80) return 0;
  if (length == 1) return 1;
  const uint8_t second = static_cast<uint8_t>(text[at + 1]);
  const bool is_broken = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
                         (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
  return is_broken ? 0 : length;
}

TextClasses ClassOfCodePoint(std::string_view text, size_t at) {
  const uint8_t lead = static_cast<uint8_t>(text[at]);
  if (lead < 0x80) return AsciiClasses()[lead];
  return CodePointLength(text, at) == 0 ? kBrokenText : kWideText;
}

}  // namespace onpolicy::grammar
