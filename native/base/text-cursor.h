// A text and the position in it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/utf8.h"

namespace onpolicy::grammar {

class TextCursor {
 protected:
  explicit TextCursor(std::string_view text) : text_(text) {}

  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool Take(std::string_view prefix) {
    if (AtEnd() || text_.substr(at_, prefix.size()) != prefix) return false;
    at_ += prefix.size();
    return true;
  }

  // Reads a number of this many hexadecimal digits. Returns -1 if the text does not have them.
  int64_t Hex(size_t digits) {
    int64_t value = 0;
    for (size_t i = 0; i < digits; i++, at_++) {
      const int digit = HexDigit(Peek());
      if (digit < 0) return -1;
      value = value * 16 + digit;
    }
    return value;
  }
  // Reads the code point behind \u, of one escape or of a pair of surrogates. Returns -1 for invalid digits.
  int64_t UnicodeEscape() {
    const int64_t high = Hex(4);
    const size_t after = at_;
    if (high >= 0xD800 && high <= 0xDBFF && Take("\\u"))
      if (const int64_t low = Hex(4); low >= 0xDC00 && low <= 0xDFFF) return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    at_ = after;
    return high;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace onpolicy::grammar
