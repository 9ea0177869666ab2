// Escapes and classes, character by character.
#include "grammar/regex/text.h"

#include <algorithm>

#include "base/utf8.h"

namespace onpolicy::grammar {

namespace {

CodePoints DigitClass() { return {{'0', '9'}}; }
CodePoints WordClass() { return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}; }
CodePoints SpaceClass() {
  return {{9, 13}, {32, 32}, {0xA0, 0xA0}, {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
          {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
}

}  // namespace

uint32_t RegexText::Code(int64_t number) {
  if (number < 0) Fail("invalid hexadecimal escape");
  return static_cast<uint32_t>(number);
}

bool RegexText::Escape(bool in_class, CodePoints* ranges) {
  at_++;
  if (AtEnd()) Fail("a backslash at the end");
  const char c = Peek();
  if (c == 'p' || c == 'P') return PropertyEscape(ranges);
  if (ClassEscape(ranges)) return false;
  const uint32_t code = CodePointEscape(in_class);
  ranges->push_back({code, code});
  return true;
}

bool RegexText::ClassEscape(CodePoints* ranges) {
  CodePoints set;
  switch (Peek()) {
    case 'd':
    case 'D': set = DigitClass(); break;
    case 'w':
    case 'W': set = WordClass(); break;
    case 's':
    case 'S': set = SpaceClass(); break;
    default: return false;
  }
  if (Peek() < 'a') set = Inverted(set);
  at_++;
  ranges->insert(ranges->end(), set.begin(), set.end());
  return true;
}

bool RegexText::PropertyEscape(CodePoints* ranges) {
  bool inverted = Peek() == 'P';
  at_++;
  std::string name;
  if (Take("{")) {
    while (!AtEnd() && Peek() != '}') name.push_back(text_[at_++]);
    if (!Take("}")) Fail("unclosed property name");
  } else if (!AtEnd()) {
    name.push_back(text_[at_++]);
  }
  if (!name.empty() && name[0] == '^') {
    inverted = !inverted;
    name.erase(0, 1);
  }
  std::optional<CodePoints> set = UnicodeClass(name);
  if (!set) Fail("unknown Unicode property '" + name + "'", true);
  if (inverted) set = Inverted(*set);
  ranges->insert(ranges->end(), set->begin(), set->end());
  return false;
}

uint32_t RegexText::CodePointEscape(bool in_class) {
  const char c = Peek();
  const auto is_letter = [](char letter) { return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z'); };
  static constexpr std::string_view kNames = "nrtfv", kControls = "\n\r\t\f\v";
  if (const size_t at = kNames.find(c); at != std::string_view::npos) {
    at_++;
    return static_cast<uint32_t>(kControls[at]);
  }
  switch (c) {
    case '0':
      if (Peek(1) >= '0' && Peek(1) <= '9') Fail("octal escapes are not supported", true);
      at_++;
      return 0;
    case 'b':
      if (!in_class) break;
      at_++;
      return '\b';
    case 'c':
      if (!is_letter(Peek(1))) break;
      at_ += 2;
      return static_cast<uint32_t>(text_[at_ - 1]) % 32;
    case 'x':
      at_++;
      return Peek() == '{' ? Braced() : Code(Hex(2));
    case 'u': {
      at_++;
      if (Peek() == '{') return Braced();
      const uint32_t code = Code(UnicodeEscape());
      if (code >= 0xD800 && code <= 0xDBFF && Peek() == '\\' && Peek(1) == 'u') Fail("unpaired surrogate");
      return code;
    }
    default:
      break;
  }
  if (is_letter(c) || (c >= '0' && c <= '9')) Fail(std::string("unknown escape '\\") + c + "'");
  return ReadCodePoint(text_, &at_);
}

uint32_t RegexText::Braced() {
  at_++;
  uint32_t value = 0;
  size_t digits = 0;
  for (; !AtEnd() && Peek() != '}'; digits++) {
    const uint32_t digit = Code(Hex(1));
    value = std::min<uint32_t>(value * 16 + digit, 0x110000);
  }
  if (!Take("}") || digits == 0 || value > kLastCodePoint) Fail("invalid code point escape");
  return value;
}

CodePoints RegexText::Class() {
  const size_t open = at_;
  at_++;
  const bool inverted = Take("^");
  CodePoints ranges;
  if (Peek() == ']' && !inverted) Fail("empty character class");
  while (Peek() != ']') {
    if (AtEnd()) FailAt(open, "unclosed character class");
    const size_t item = at_;
    if (Peek() == '[' && Peek(1) == ':') Fail("POSIX classes are not supported", true);
    bool single = true;
    if (Peek() == '\\') {
      single = Escape(true, &ranges);
    } else {
      const uint32_t code = ReadCodePoint(text_, &at_);
      ranges.push_back({code, code});
    }
    if (Peek() != '-' || Peek(1) == ']' || Peek(1) == '\0') continue;
    if (!single) continue;  // a hyphen after a class such as \w stands for itself
    at_++;
    const uint32_t low = ranges.back().first;
    ranges.pop_back();
    CodePoints end;
    bool end_single = true;
    if (Peek() == '\\') {
      end_single = Escape(true, &end);
    } else {
      const uint32_t code = ReadCodePoint(text_, &at_);
      end.push_back({code, code});
    }
    if (!end_single) {
      ranges.push_back({low, low});
      ranges.push_back({'-', '-'});
      ranges.insert(ranges.end(), end.begin(), end.end());
    } else if (end.back().first < low) {
      FailAt(item, "character range out of order");
    } else {
      ranges.push_back({low, end.back().first});
    }
  }
  at_++;
  ranges = Normalized(std::move(ranges));
  if (options_.ignore_case) ranges = WithBothCases(ranges);
  return inverted ? Inverted(ranges) : ranges;
}

}  // namespace onpolicy::grammar
