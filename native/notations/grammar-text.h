// A cursor over a grammar's text: reads numbers; errors name line and column.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/spec-error.h"
#include "base/text-cursor.h"
#include "pushdown/rule-set.h"

namespace onpolicy::grammar {

// "line L, column C" of an offset.
std::string LineAndColumn(std::string_view text, size_t offset);

class GrammarText : protected TextCursor {
 protected:
  using TextCursor::TextCursor;

  [[noreturn]] void Fail(const std::string& what, size_t at) const {
    throw SpecError("INVALID_REQUEST", LineAndColumn(text_, at), what, at);
  }
  [[noreturn]] void Fail(const std::string& what) const { Fail(what, at_); }
  [[noreturn]] void Unsupported(const std::string& what, size_t at) const {
    throw SpecError("UNSUPPORTED", LineAndColumn(text_, at), what, at);
  }
  uint32_t Number();
  // Alternatives between bars. `items` reads one, `blank` what may stand before a bar.
  template <typename Items, typename Blank>
  RuleExpr ReadChoice(bool is_too_deep, Items items, Blank blank) {
    if (is_too_deep) Fail("nested too deeply");
    std::vector<RuleExpr> options;
    do {
      options.push_back(items());
      blank();
    } while (Take("|"));
    return RuleExpr::Choice(std::move(options));
  }
};

}  // namespace onpolicy::grammar
