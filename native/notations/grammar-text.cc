#include "notations/grammar-text.h"

#include <algorithm>

namespace onpolicy::grammar {

std::string LineAndColumn(std::string_view text, size_t offset) {
  size_t line = 1, start = 0;
  for (size_t i = 0; i < offset && i < text.size(); i++)
    if (text[i] == '\n') {
      line++;
      start = i + 1;
    }
  return "line " + std::to_string(line) + ", column " + std::to_string(offset - start + 1);
}

uint32_t GrammarText::Number() {
  if (Peek() < '0' || Peek() > '9') Fail("expected a number");
  uint64_t value = 0;
  for (; Peek() >= '0' && Peek() <= '9'; at_++)
    value = std::min<uint64_t>(value * 10 + static_cast<uint64_t>(Peek() - '0'), 1u << 31);
  if (value > 100000000) Fail("the number is too large");
  return static_cast<uint32_t>(value);
}

}  // namespace onpolicy::grammar
