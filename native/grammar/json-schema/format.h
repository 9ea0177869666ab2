// Names of `format` -> regular expressions over the whole string.
#pragma once
#include <string_view>

namespace onpolicy::grammar {

// Returns the expression, or null for an unknown format.
const char* FormatPattern(std::string_view format);

}  // namespace onpolicy::grammar
