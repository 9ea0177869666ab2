#include "notations/ebnf-text.h"

#include "base/utf8.h"
#include "regex/char-class.h"

namespace onpolicy::grammar {

namespace {

bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

}  // namespace

void EbnfText::Blank() {
  while (!AtEnd()) {
    if (text_[at_] == '#') {
      while (!AtEnd() && text_[at_] != '\n') at_++;
    } else if (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r') {
      at_++;
    } else {
      return;
    }
  }
}

void EbnfText::Expect(std::string_view token) {
  Blank();
  if (!Take(token)) Fail("expected '" + std::string(token) + "'");
}

std::string EbnfText::Name() {
  const size_t begin = at_;
  if (Peek() != '.' && Peek() != '-')
    while (IsNameChar(Peek())) at_++;
  return std::string(text_.substr(begin, at_ - begin));
}

bool EbnfText::AtRule() {
  const size_t saved = at_;
  bool result = false;
  if (!Name().empty()) {
    if (Peek() == '[')
      while (!AtEnd() && Peek() != ']' && Peek() != '\n') at_++;
    if (Peek() == ']') at_++;
    while (Peek() == ' ' || Peek() == '\t') at_++;
    result = text_.substr(at_, 3) == "::=";
  }
  at_ = saved;
  return result;
}

uint32_t EbnfText::Hex(size_t digits) {
  uint32_t value = 0;
  for (size_t i = 0; i < digits; i++, at_++) {
    const char c = Peek();
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) Fail("invalid hexadecimal escape");
    value = value * 16 + static_cast<uint32_t>(digit);
  }
  if (value > kLastCodePoint) Fail("the code point is too large");
  return value;
}

uint32_t EbnfText::Escape() {
  at_++;
  const char c = Peek();
  at_++;
  const std::string_view from = "nrtabfv0", to("\n\r\t\a\b\f\v\0", 8);
  if (const size_t index = from.find(c); c != '\0' && index != std::string_view::npos)
    return static_cast<uint8_t>(to[index]);
  if (c == 'x') return Hex(2);
  if (c == 'u') {
    const uint32_t code = Hex(4);
    if (code < 0xD800 || code > 0xDBFF || Peek() != '\\' || Peek(1) != 'u') return code;
    at_ += 2;
    return 0x10000 + ((code - 0xD800) << 10) + ((Hex(4) - 0xDC00) & 0x3FF);
  }
  if (c == 'U') return Hex(8);
  if (std::string_view("\"'?\\/[]-^.").find(c) != std::string_view::npos && c != '\0') return static_cast<uint8_t>(c);
  at_--;
  Fail("unknown escape");
}

std::string EbnfText::Literal() {
  const size_t start = at_++;
  std::string result;
  while (true) {
    if (AtEnd() || Peek() == '\n') Fail("unterminated string", start);
    if (Take("\"")) return result;
    if (Peek() == '\\') {
      AppendUtf8(Escape(), &result);
    } else {
      result.push_back(text_[at_++]);
    }
  }
}

}  // namespace onpolicy::grammar
