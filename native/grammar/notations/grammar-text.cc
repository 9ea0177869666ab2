#include "grammar/notations/grammar-text.h"

#include <algorithm>

#include "base/utf8.h"

namespace onpolicy::grammar {

std::string LineAndColumn(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const size_t line = static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  // If there is no line end before it, npos + 1 is the start of the text.
  return "line " + std::to_string(line) + ", column " + std::to_string(offset - (before.rfind('\n') + 1) + 1);
}

JsonValue ReadJson(std::string_view text, const char* what, size_t from) {
  JsonError error;
  JsonValue value = ParseJson(text.substr(from), &error);
  if (error.message.empty()) return value;
  const size_t at = from + error.position;
  throw SpecError("INVALID_REQUEST", LineAndColumn(text, at), std::string("the ") + what + " is not JSON: " + error.message, at);
}

void GrammarText::InlineBlank() {
  while (Take(" ") || Take("\t") || Take("\\\n")) {
  }
}

void GrammarText::Blank() {
  for (InlineBlank(); !AtEnd(); InlineBlank()) {
    if (Peek() == '#' || (Peek() == '/' && Peek(1) == '/')) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (!Take("\n") && !Take("\r")) {
      return;
    }
  }
}

void GrammarText::Expect(std::string_view token) {
  Blank();
  if (!Take(token)) Fail("expected '" + std::string(token) + "'");
}

uint32_t GrammarText::Number() {
  if (!IsDigit(Peek())) Fail("expected a number");
  uint64_t value = 0;
  for (; IsDigit(Peek()); at_++) value = std::min<uint64_t>(value * 10 + static_cast<uint64_t>(Peek() - '0'), 1u << 31);
  if (value > 100000000) Fail("the number is too large");
  return static_cast<uint32_t>(value);
}

std::string GrammarText::Name() {
  const size_t begin = at_;
  const auto joins = [&](char c) { return is_lark_ ? c == '-' && IsWord(Peek(1)) : c == '-' || c == '.'; };
  while (IsWord(Peek()) || (at_ > begin && joins(Peek()))) at_++;
  return std::string(text_.substr(begin, at_ - begin));
}

bool GrammarText::IsTerminal(const std::string& name) const {
  const size_t first = name.find_first_not_of('_');
  return is_lark_ && first != std::string::npos && name[first] >= 'A' && name[first] <= 'Z';
}

bool GrammarText::AtStatement() {
  const size_t saved = at_;
  bool result = false;
  if (is_lark_ && Take("%")) {
    const std::string name = Name();
    result = name == "import" || name == "ignore" || name == "declare" || name == "override" || name == "extend" ||
             name == "grammar_options";
  } else {
    while (is_lark_ && (Take("?") || Take("!"))) {
    }
    if (!Name().empty()) {
      if (Peek() == '[') {
        while (!AtEnd() && Peek() != ']' && Peek() != '\n')
          if (at_++; is_lark_ && text_[at_ - 1] == '"') FinishString();
        at_++;
      }
      if (Peek() == '.')  // a priority
        while (Peek() == '.' || IsDigit(Peek())) at_++;
      if (is_lark_ && Peek() == '{')  // a template
        while (!AtEnd() && Peek() != '\n' && text_[at_ - 1] != '}') at_++;
      InlineBlank();
      result = Take(is_lark_ ? ":" : "::=");
    }
  }
  at_ = saved;
  return result;
}

uint32_t GrammarText::Code(int64_t number) const {
  if (number < 0) Fail("invalid hexadecimal escape");
  if (number > kLastCodePoint) Fail("the code point is too large");
  return static_cast<uint32_t>(number);
}

uint32_t GrammarText::Character() {
  if (!Take("\\")) return ReadCodePoint(text_, &at_);
  constexpr std::string_view kNames = "nrtabfv0\"'?\\/[]-^.", kMeant("\n\r\t\a\b\f\v\0\"'?\\/[]-^.", 18);
  if (const size_t index = kNames.find(Peek()); index != std::string_view::npos) {
    at_++;
    return static_cast<uint8_t>(kMeant[index]);
  }
  if (Take("x")) return Code(Hex(2));
  if (Take("U")) return Code(Hex(8));
  if (!Take("u")) Fail("unknown escape");
  return Code(UnicodeEscape());
}

std::string GrammarText::String() {
  Blank();
  const size_t start = at_;
  if (!Take("\"")) Fail("expected a string");
  std::string result;
  while (!Take("\"")) {
    if (AtEnd() || Peek() == '\n') Fail("unterminated string", start);
    if (Peek() != '\\') {
      result += text_[at_++];
      continue;
    }
    const size_t where = at_;
    const uint32_t code = Character();
    if (code >= 0xD800 && code <= 0xDFFF) Fail("unpaired surrogate", where);
    AppendUtf8(code, &result);
  }
  return result;
}

void GrammarText::FinishString() {
  while (!AtEnd() && Peek() != '"') at_ += Peek() == '\\' ? 2 : 1;
  at_++;
}

std::string_view GrammarText::Brackets() {
  const size_t start = at_;
  const char open = Peek(), close = open == '{' ? '}' : ']';
  for (size_t depth = 0; !AtEnd();) {
    const char c = text_[at_++];
    if (c == '"') FinishString();
    if (c == open) depth++;
    if (c == close && --depth == 0) return text_.substr(start, at_ - start);
  }
  Fail(std::string("unclosed '") + open + "'", start);
}

JsonValue GrammarText::Json() {
  Blank();
  const size_t start = at_;
  Peek() == '{' || Peek() == '[' ? void(Brackets()) : void(Name());
  return ReadJson(text_.substr(0, at_), "value", start);
}

}  // namespace onpolicy::grammar
