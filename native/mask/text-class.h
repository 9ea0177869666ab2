// Classes of characters as bits of a mask: those of a text, and those over which an automaton state loops.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace onpolicy::grammar {

using TextClasses = uint32_t;
constexpr TextClasses kWideText = 1u << 29;    // code points beyond ASCII, the last possibly cut off
constexpr TextClasses kBrokenText = 1u << 30;  // anything that is no UTF-8 from here on

// By ASCII character: its class, as one bit.
const std::array<TextClasses, 128>& AsciiClasses();
// The byte that stands for all which patterns rarely tell apart: for a lower-case letter 'a', a capital 'A', a digit '0'.
constexpr uint8_t kAlikeFirst[] = {'a', 'A', '0'}, kAlikeLast[] = {'z', 'Z', '9'};
constexpr uint8_t AlikeByte(uint8_t byte) {
  for (size_t i = 0; i < std::size(kAlikeFirst); i++)
    if (byte >= kAlikeFirst[i] && byte <= kAlikeLast[i]) return kAlikeFirst[i];
  return byte;
}
// Bytes of the code point at `at`, fewer where the text ends inside it; 0 when it is broken.
size_t CodePointLength(std::string_view text, size_t at);
// Classes of the code point at `at`.
TextClasses ClassOfCodePoint(std::string_view text, size_t at);

}  // namespace onpolicy::grammar
