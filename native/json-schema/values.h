// JSON values, and restrictions of numbers and strings -> formulas.
#pragma once
#include <string>
#include <vector>

#include "json-schema/formula.h"
#include "json-schema/number-language.h"
#include "json/value.h"
#include "regex/char-class.h"

namespace onpolicy::grammar {

class ValueFormulas {
 public:
  explicit ValueFormulas(RegexPool& pool)
      : pool_(pool), numbers_(pool), strict_text_(pool, TextForm::kJson), free_text_(pool, TextForm::kJsonAnyway) {}

  RegexPool& pool() { return pool_; }
  FormulaTable& formulas() { return formulas_; }
  NumberLanguage& numbers() { return numbers_; }
  // Strings whose printable ASCII is not escaped: those that a restriction compares.
  CharEncoder& strict_text() { return strict_text_; }
  // Strings in any spelling.
  CharEncoder& free_text() { return free_text_; }

  // Numbers (or strings) of `node`; `other` is the negation.
  FormulaId Number(NodeId node, NodeId other);
  FormulaId String(NodeId node, NodeId other);
  // The same where all other strings are the negation.
  FormulaId String(NodeId node);
  // One of the values. Scalars of one type share an atom, so that a long list is one automaton. `any_order`: of the members of objects.
  FormulaId AnyOf(const std::vector<JsonValue>& values, bool any_order);
  // What only this value satisfies.
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
