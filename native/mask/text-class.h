// Classes of characters as bits of a mask: those of a text, and those over which an automaton state loops.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace onpolicy::grammar {

using TextClasses = uint32_t;
constexpr TextClasses kWideText = 1u << 29;    // code points beyond ASCII, the last possibly cut off
constexpr TextClasses kBrokenText = 1u << 30;  // anything that is no UTF-8 from here on

// The class of an ASCII character, as one bit.
TextClasses ClassOfAscii(uint8_t byte);
// Bytes of the code point at `at`, fewer where the text ends inside it; 0 when it is broken.
size_t CodePointLength(std::string_view text, size_t at);
// Classes of the code point at `at`.
TextClasses ClassOfCodePoint(std::string_view text, size_t at);

}  // namespace onpolicy::grammar
