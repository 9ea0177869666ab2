// JSON values, and restrictions of numbers and strings -> formulas.
#pragma once
#include <string>
#include <vector>

#include "grammar/json-schema/shapes/formula.h"
#include "grammar/json-schema/number-language.h"
#include "grammar/json/value.h"
#include "grammar/regex/char-class.h"

namespace onpolicy::grammar {

class ValueFormulas {
 public:
  explicit ValueFormulas(RegexPool& pool)
      : pool_(pool), numbers_(pool), strict_text_(pool, TextForm::kJson), free_text_(pool, TextForm::kJsonAnyway) {}

  RegexPool& pool() { return pool_; }
  FormulaTable& formulas() { return formulas_; }
  NumberLanguage& numbers() { return numbers_; }
  // Strings with printable ASCII unescaped: the spelling that restrictions compare.
  CharEncoder& strict_text() { return strict_text_; }
  // Strings in any spelling.
  CharEncoder& free_text() { return free_text_; }

  // Return the numbers (or strings) of `node`; `other` is the negation.
  FormulaId Number(NodeId node, NodeId other);
  FormulaId String(NodeId node, NodeId other);
  // Returns the same with all other strings as the negation.
  FormulaId String(NodeId node);
  // Returns a formula for any of the values. Scalars of one type share an atom, so that a long list is one automaton. `any_order`: of the
  // members of objects.
  FormulaId AnyOf(const std::vector<JsonValue>& values, bool any_order);
  // Returns a formula that only this value satisfies.
  FormulaId Exactly(const JsonValue& value, bool any_order);

 private:
  FormulaId ExactArray(const JsonValue& value, bool any_order);
  FormulaId ExactObject(const JsonValue& value, bool any_order);

  RegexPool& pool_;
  FormulaTable formulas_;
  NumberLanguage numbers_;
  CharEncoder strict_text_, free_text_;
};

}  // namespace onpolicy::grammar
