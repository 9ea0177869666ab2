// UTF-8 text <-> code points.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace onpolicy::grammar {

// Reads one code point of valid UTF-8 at `at` and moves on; a broken byte reads as itself.
uint32_t ReadCodePoint(std::string_view text, size_t* at);
void AppendUtf8(uint32_t code_point, std::string* out);

}  // namespace onpolicy::grammar
