// A cursor over a grammar's text: reads numbers; errors name line and column.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/spec-error.h"
#include "base/text-cursor.h"

namespace onpolicy::grammar {

// "line L, column C" of an offset.
std::string LineAndColumn(std::string_view text, size_t offset);

class GrammarText : protected TextCursor {
 protected:
  using TextCursor::TextCursor;

  [[noreturn]] void Fail(const std::string& what, size_t at) const {
    throw SpecError("INVALID_REQUEST", LineAndColumn(text_, at), what);
  }
  [[noreturn]] void Fail(const std::string& what) const { Fail(what, at_); }
  [[noreturn]] void Unsupported(const std::string& what, size_t at) const {
    throw SpecError("UNSUPPORTED", LineAndColumn(text_, at), what);
  }
  uint32_t Number();
};

}  // namespace onpolicy::grammar
