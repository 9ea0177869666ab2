// A schema -> rules of the grammar, made when a document reaches them. Content that must not repeat (further keys, unique
// items) is read back from the text when a member or item ends, by a deferred symbol.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "grammar/json-schema/array-rules.h"
#include "grammar/json-schema/object-rules.h"
#include "grammar/json-schema/tagged-rules.h"

namespace onpolicy::grammar {

class SchemaRules {
 public:
  SchemaRules(Grammar& grammar, JsonValue schema, const SchemaOptions& options);
  SchemaRules(const SchemaRules&) = delete;

  // Returns the symbol of the whole document; throws SpecError. `this` must live as long as the grammar: see Grammar::Keep.
  Symbol Root();
  // Returns a value of the formula other than the arrays and objects of a set.
  Symbol Value(FormulaId formula, SeenSet excluded = 0);

  ObjectRules& objects() { return objects_; }
  ArrayRules& arrays() { return arrays_; }
  TaggedRules& tags() { return *tags_; }
  const std::vector<Warning>& warnings() { return context_.compiler.warnings(); }

 private:
  std::vector<SequenceId> Productions(FormulaId formula, SeenSet excluded);

  RuleContext context_;
  ObjectRules objects_;
  ArrayRules arrays_;
  std::optional<TaggedRules> tags_;
  SymbolMemo<std::pair<FormulaId, SeenSet>> values_;
};

}  // namespace onpolicy::grammar
