// UTF-8 text <-> code points.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace onpolicy::grammar {

// Returns 0 to 15, or -1 for a character that is no hexadecimal digit.
inline int HexDigit(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Reads one code point of valid UTF-8 at `at` and moves behind it. An invalid byte is returned as its value.
uint32_t ReadCodePoint(std::string_view text, size_t* at);
void AppendUtf8(uint32_t code_point, std::string* out);

}  // namespace onpolicy::grammar
