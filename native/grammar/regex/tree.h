// A pattern -> the syntax tree of the regular expression.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "grammar/regex/char-class.h"
#include "grammar/regex/parse.h"

namespace onpolicy::grammar {

struct RegexTree {
  enum Kind { kEmpty, kClass, kConcat, kAlternate, kRepeat, kStart, kEnd, kLook, kBoundary } kind = kEmpty;
  CodePoints ranges;
  std::vector<std::shared_ptr<RegexTree>> parts;
  uint32_t min = 0, max = 0;
  bool negative = false;    // look-ahead or word boundary: it must not match
  bool zero_width = false;  // contains an anchor, a look-ahead or a word boundary
};
using RegexTreePtr = std::shared_ptr<RegexTree>;

// Reads a pattern by recursive descent of limited depth.
RegexTreePtr ReadRegex(std::string_view pattern, const RegexOptions& options);

}  // namespace onpolicy::grammar
