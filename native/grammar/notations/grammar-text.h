// The text of a grammar, in any dialect -> names, numbers, strings and JSON values; errors name line and column.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/spec-error.h"
#include "base/text-cursor.h"
#include "grammar/notations/front-ends.h"

namespace onpolicy::grammar {

// Returns "line L, column C" of an offset.
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
  void Blank();                         // skips blanks, line ends and comments
  void Expect(std::string_view token);  // skips blanks before it
  // Reads one or more elements, separated by commas.
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
  // Returns true if `name` is a terminal of Lark: its first letter is upper case.
  bool IsTerminal(const std::string& name) const;
  std::string Called(const std::string& name) const { return (IsTerminal(name) ? "terminal '" : "rule '") + name + "'"; }
  // Returns true if a statement begins here: a directive, or a name, optionally with attributes, and its definition.
  bool AtStatement();
  // Reads a code point, which may be escaped.
  uint32_t Character();
  std::string String();  // skips blanks before it
  // Returns the text from the bracket here to the matching one, ignoring brackets in strings.
  std::string_view Brackets();
  // Reads a JSON value without blanks, or in brackets.
  JsonValue Json();

  const bool is_lark_;

 private:
  [[noreturn]] void Refuse(const char* code, const std::string& what, size_t at) const {
    throw SpecError(code, LineAndColumn(text_, at), what, at);
  }
  uint32_t Code(int64_t number) const;  // the code point of a numeric escape
  void FinishString();  // behind its first quote
};

}  // namespace onpolicy::grammar
