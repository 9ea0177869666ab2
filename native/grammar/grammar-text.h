// A grammar's text and the place where reading it has come to.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "grammar/schema-error.h"

namespace onpolicy::grammar {

// "line L, column C" of an offset.
std::string LineAndColumn(std::string_view text, size_t offset);

class GrammarText {
 protected:
  explicit GrammarText(std::string_view text) : text_(text) {}

  [[noreturn]] void Fail(const std::string& what, size_t at) const {
    throw SchemaError("INVALID_REQUEST", LineAndColumn(text_, at), what);
  }
  [[noreturn]] void Fail(const std::string& what) const { Fail(what, at_); }
  [[noreturn]] void Unsupported(const std::string& what, size_t at) const {
    throw SchemaError("UNSUPPORTED", LineAndColumn(text_, at), what);
  }
  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool Take(std::string_view prefix) {
    if (text_.substr(at_, prefix.size()) != prefix) return false;
    at_ += prefix.size();
    return true;
  }
  uint32_t Number();

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace onpolicy::grammar
