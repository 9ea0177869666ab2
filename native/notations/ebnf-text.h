// Text of a GBNF or EBNF grammar -> names and literals; skips blanks and comments.
#pragma once
#include <string>

#include "notations/grammar-text.h"

namespace onpolicy::grammar {

class EbnfText : protected GrammarText {
 protected:
  using GrammarText::GrammarText;

  void Blank();
  void Expect(std::string_view token);  // after blanks
  std::string Name();
  // Whether a rule begins here: a name, perhaps with attributes, and "::=".
  bool AtRule();
  uint32_t Escape();
  std::string Literal();

 private:
  uint32_t Hex(size_t digits);
};

}  // namespace onpolicy::grammar
