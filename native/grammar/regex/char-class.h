// Sets of code points -> byte expressions, either plain UTF-8 or as the inside of a JSON string.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/regex/pool.h"

namespace onpolicy::grammar {

// Sorted, disjoint, non-adjacent ranges of Unicode scalar values.
using CodePoints = std::vector<std::pair<uint32_t, uint32_t>>;
constexpr uint32_t kLastCodePoint = 0x10FFFF;

CodePoints Normalized(CodePoints ranges);
CodePoints Inverted(const CodePoints& ranges);
// Adds every character that differs from a member only in case.
CodePoints WithBothCases(const CodePoints& ranges);
// Returns the class of `name` as in \p{name}: a general category, a binary property or Script=X.
std::optional<CodePoints> UnicodeClass(std::string_view name);

enum class TextForm {
  kPlain,       // UTF-8
  kJson,        // inside a JSON string; printable ASCII is never escaped, so that every text has few spellings
  kJsonAnyway,  // inside a JSON string, with every escape that JSON allows
};

class CharEncoder {
 public:
  CharEncoder(RegexPool& pool, TextForm form) : pool_(pool), form_(form) {}
  RegexPool& pool() { return pool_; }
  NodeId Class(const CodePoints& ranges);
  NodeId Any() { return Class({{0, kLastCodePoint}}); }
  NodeId AnyText() { return pool_.Repeat(Any(), 0, kUnlimited); }
  // Returns the expression of exactly this text.
  NodeId Text(std::string_view utf8);

 private:
  NodeId Utf8(uint32_t low, uint32_t high);
  NodeId Hex(uint32_t low, uint32_t high);  // \uXXXX for a range within the first plane
  void AddJson(uint32_t low, uint32_t high, std::vector<NodeId>* options);

  RegexPool& pool_;
  TextForm form_;
  std::map<CodePoints, NodeId> memo_;
};

}  // namespace onpolicy::grammar
