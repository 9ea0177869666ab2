// Names of `format` -> regular expressions over the whole string.
#pragma once
#include <string_view>

namespace onpolicy::grammar {

// The expression, or null for a format that is not known.
const char* FormatPattern(std::string_view format);

}  // namespace onpolicy::grammar
