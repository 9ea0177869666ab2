#include "notations/lark-text.h"

#include <algorithm>

namespace onpolicy::grammar {

void LarkText::InlineBlank() {
  while (Peek() == ' ' || Peek() == '\t' || (Peek() == '\\' && Peek(1) == '\n')) at_ += Peek() == '\\' ? 2 : 1;
}

void LarkText::Blank() {
  while (!AtEnd()) {
    const char c = Peek();
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      at_++;
    } else if (c == '#' || (c == '/' && Peek(1) == '/')) {
      while (!AtEnd() && Peek() != '\n') at_++;
    } else {
      return;
    }
  }
}

bool LarkText::IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string LarkText::Name() {
  const size_t begin = at_;
  while (IsNameChar(Peek()) || (at_ > begin && Peek() == '-' && IsNameChar(Peek(1)))) at_++;
  return std::string(text_.substr(begin, at_ - begin));
}

bool LarkText::IsTerminalName(const std::string& name) {
  for (char c : name)
    if (c != '_') return c >= 'A' && c <= 'Z';
  return false;
}

bool LarkText::IsPlainName(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), IsNameChar);
}

bool LarkText::AtStatement() {
  const size_t saved = at_;
  bool result = false;
  if (Peek() == '%') {
    const size_t begin = ++at_;
    const std::string name(text_.substr(begin, text_.find_first_of(" \t\r\n{", begin) - begin));
    result = name == "import" || name == "ignore" || name == "declare" || name == "override" || name == "extend" ||
             name == "grammar_options";
  } else {
    while (Peek() == '?' || Peek() == '!') at_++;
    if (!Name().empty()) {
      if (Peek() == '[') {
        while (!AtEnd() && Peek() != ']' && Peek() != '\n') at_ += Peek() == '"' ? SkipString() : 1;
        at_++;
      }
      if (Peek() == '.' && Peek(1) >= '0' && Peek(1) <= '9')
        while (Peek() == '.' || (Peek() >= '0' && Peek() <= '9')) at_++;
      if (Peek() == '{')
        while (!AtEnd() && Peek() != '\n' && Peek(-1) != '}') at_++;
      InlineBlank();
      result = Peek() == ':';
    }
  }
  at_ = saved;
  return result;
}

size_t LarkText::SkipString() const {
  size_t end = at_ + 1;
  while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
  return end + 1 - at_;
}

std::string LarkText::String(bool* ignore_case) {
  const size_t start = at_;
  const size_t length = SkipString();
  if (start + length > text_.size()) Fail("unterminated string", start);
  std::string body(text_.substr(start, length));
  if (body.find('\n') != std::string::npos) Fail("unterminated string", start);
  for (size_t i = 0; i + 3 < body.size(); i++) {
    if (body[i] != '\\') continue;
    if (body[i + 1] == 'x') body.replace(i, 2, "\\u00");
    if (body[i + 1] == '\'') body.erase(i, 1);
    i++;
  }
  JsonError error;
  const JsonValue value = ParseJson(body, &error);
  if (!error.message.empty()) Fail("in the string: " + error.message, start);
  at_ += length;
  while (Peek() == 'i') {
    *ignore_case = true;
    at_++;
  }
  if (IsNameChar(Peek())) Fail("unknown flag");
  return value.text;
}

JsonValue LarkText::Json() {
  Blank();
  const size_t start = at_;
  size_t depth = 0;
  while (!AtEnd()) {
    if (Peek() == '"') {
      at_ += SkipString();
      continue;
    }
    if (Peek() == '{' || Peek() == '[') depth++;
    if ((Peek() == '}' || Peek() == ']') && --depth == 0) {
      at_++;
      break;
    }
    if (depth == 0 && (Peek() == '\n' || Peek() == ' ')) break;
    at_++;
  }
  JsonError error;
  JsonValue value = ParseJson(text_.substr(start, std::min(at_, text_.size()) - start), &error);
  if (!error.message.empty()) Fail("the value is not JSON: " + error.message, start + error.position);
  return value;
}

}  // namespace onpolicy::grammar
