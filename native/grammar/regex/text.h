// The text of a regular expression: its escapes and character classes.
#pragma once
#include <string>
#include <string_view>

#include "base/text-cursor.h"
#include "grammar/regex/tree.h"

namespace onpolicy::grammar {

class RegexText : protected TextCursor {
 protected:
  RegexText(std::string_view text, const RegexOptions& options) : TextCursor(text), options_(options) {}

  [[noreturn]] void Fail(std::string message, bool unsupported = false) { throw ParseError{at_, std::move(message), unsupported}; }

  [[noreturn]] void FailAt(size_t place, std::string message, bool unsupported = false) {
    throw ParseError{place, std::move(message), unsupported};
  }

  // Reads an escape. Returns true if it is one character, which may then begin a range.
  bool Escape(bool in_class, CodePoints* ranges);
  CodePoints Class();

  RegexOptions options_;

 private:
  // Reads \d, \w, \s or their complements. Returns false for any other escape.
  bool ClassEscape(CodePoints* ranges);
  // Reads \p{name}. Returns false.
  bool PropertyEscape(CodePoints* ranges);
  // Reads an escape of one character.
  uint32_t CodePointEscape(bool in_class);
  // Returns the code point of a numeric escape.
  uint32_t Code(int64_t number);
  uint32_t Braced();
};

}  // namespace onpolicy::grammar
