// A regular expression's text: escapes and character classes in it.
#pragma once
#include <string>
#include <string_view>

#include "grammar/regex-tree.h"

namespace onpolicy::grammar {

class RegexText {
 protected:
  RegexText(std::string_view text, const RegexOptions& options) : text_(text), options_(options) {}

  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool Take(std::string_view prefix) {
    if (text_.substr(at_, prefix.size()) != prefix) return false;
    at_ += prefix.size();
    return true;
  }
  void Fail(std::string message, bool unsupported = false) {
    if (error_.ok()) error_ = {at_, std::move(message), unsupported};
  }

  // Reads an escape. Returns true when it stands for one character, which may then begin a range.
  bool Escape(bool in_class, CodePoints* ranges);
  CodePoints Class();

  std::string_view text_;
  RegexOptions options_;
  size_t at_ = 0;
  ParseError error_;

 private:
  uint32_t HexDigits(size_t count);
  uint32_t Braced();
};

}  // namespace onpolicy::grammar
