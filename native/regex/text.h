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

  void Fail(std::string message, bool unsupported = false) {
    if (error_.ok()) error_ = {at_, std::move(message), unsupported};
  }

  // Reads an escape. Returns true when it stands for one character, which may then begin a range.
  bool Escape(bool in_class, CodePoints* ranges);
  CodePoints Class();

  RegexOptions options_;
  ParseError error_;

 private:
  uint32_t HexDigits(size_t count);
  uint32_t Braced();
};

}  // namespace onpolicy::grammar
