// The text of a grammar, in either dialect -> names, numbers, strings and JSON values; errors name line and column.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/spec-error.h"
#include "base/text-cursor.h"
#include "notations/front-ends.h"

namespace onpolicy::grammar {

// "line L, column C" of an offset.
std::string LineAndColumn(std::string_view text, size_t offset);

class GrammarText : protected TextCursor {
 protected:
  GrammarText(std::string_view text, Dialect dialect) : TextCursor(text), is_lark_(dialect == Dialect::kLark) {}

  [[noreturn]] void Fail(const std::string& what, size_t at) const { Refuse("INVALID_REQUEST", what, at); }
  [[noreturn]] void Fail(const std::string& what) const { Fail(what, at_); }
  [[noreturn]] void Unsupported(const std::string& what, size_t at) const { Refuse("UNSUPPORTED", what, at); }

  static bool IsDigit(char c) { return c >= '0' && c <= '9'; }
  static bool IsWord(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || IsDigit(c) || c == '_'; }

  void InlineBlank();
  void Blank();                         // with line ends and comments
  void Expect(std::string_view token);  // after blanks
  // One thing or more, between commas.
  template <typename Read>
  void List(const Read& read) {
    do {
      Blank();
      read();
      Blank();
    } while (Take(","));
  }
  uint32_t Number();
  std::string Name();
  // Of Lark: its first letter is a capital one.
  bool IsTerminal(const std::string& name) const;
  std::string Called(const std::string& name) const { return (IsTerminal(name) ? "terminal '" : "rule '") + name + "'"; }
  // Whether a statement begins here: a directive, or a name, perhaps with attributes, and what defines it.
  bool AtStatement();
  // A code point, perhaps as an escape.
  uint32_t Character();
  std::string String();  // after blanks
  // From the bracket here to the one that closes it, outside of strings.
  std::string_view Brackets();
  // A JSON value without blanks, or in brackets.
  JsonValue Json();

  const bool is_lark_;

 private:
  [[noreturn]] void Refuse(const char* code, const std::string& what, size_t at) const {
    throw SpecError(code, LineAndColumn(text_, at), what, at);
  }
  uint32_t Code(int64_t number) const;  // what a numeric escape says
  void FinishString();  // behind its first quote
};

}  // namespace onpolicy::grammar
