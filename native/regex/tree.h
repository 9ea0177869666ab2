// A regular expression as it is written: pattern -> tree.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "regex/char-class.h"
#include "regex/parse.h"

namespace onpolicy::grammar {

struct RegexTree {
  enum Kind { kEmpty, kClass, kConcat, kAlternate, kRepeat, kStart, kEnd, kLook, kBoundary } kind = kEmpty;
  CodePoints ranges;
  std::vector<std::shared_ptr<RegexTree>> parts;
  uint32_t min = 0, max = 0;
  bool negative = false;    // of a look-ahead or a word boundary
  bool zero_width = false;  // contains an anchor, a look-ahead or a word boundary
};
using RegexTreePtr = std::shared_ptr<RegexTree>;

// Reads a pattern, by recursive descent of bounded depth.
RegexTreePtr ReadRegex(std::string_view pattern, const RegexOptions& options);

}  // namespace onpolicy::grammar
