// A Lark grammar's text: names, strings, blanks and JSON values in it.
#pragma once
#include <string>
#include <string_view>

#include "json/value.h"
#include "notations/grammar-text.h"

namespace onpolicy::grammar {

class LarkText : protected GrammarText {
 protected:
  using GrammarText::GrammarText;

  void InlineBlank();
  void Blank();  // with line ends and comments
  static bool IsNameChar(char c);
  std::string Name();
  static bool IsTerminalName(const std::string& name);
  static bool IsPlainName(const std::string& name);
  // Whether a statement begins here: a directive, or a name, perhaps with attributes, and a colon.
  bool AtStatement();
  size_t SkipString() const;
  // "..." with JSON's escapes and \xHH, and the flag i.
  std::string String(bool* ignore_case);
  // A JSON value in the text.
  JsonValue Json();
};

}  // namespace onpolicy::grammar
