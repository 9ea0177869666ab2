// A text and the position in it.
#pragma once
#include <cstddef>
#include <string_view>

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

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace onpolicy::grammar
