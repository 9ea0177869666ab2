// A regular expression's text: escapes and character classes in it.
#pragma once
#include <string>
#include <string_view>

#include "base/text-cursor.h"
#include "regex/tree.h"

namespace onpolicy::grammar {

class RegexText : protected TextCursor {
 protected:
  RegexText(std::string_view text, const RegexOptions& options) : TextCursor(text), options_(options) {}

  [[noreturn]] void Fail(std::string message, bool unsupported = false) { throw ParseError{at_, std::move(message), unsupported}; }

  [[noreturn]] void FailAt(size_t place, std::string message, bool unsupported = false) {
    throw ParseError{place, std::move(message), unsupported};
  }

  // Reads an escape. Returns true for one character, which may then begin a range.
  bool Escape(bool in_class, CodePoints* ranges);
  CodePoints Class();

  RegexOptions options_;

 private:
  // \d, \w, \s and their complements; false for any other escape.
  bool ClassEscape(CodePoints* ranges);
  // \p{name}. Returns false.
  bool PropertyEscape(CodePoints* ranges);
  // An escape for one character.
  uint32_t CodePointEscape(bool in_class);
  // What a numeric escape says.
  uint32_t Code(int64_t number);
  uint32_t Braced();
};

}  // namespace onpolicy::grammar
