// Tagged parameters: the members of an object as tags whose values are texts as they are, or JSON.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "json-schema/rule-context.h"

namespace onpolicy::grammar {

class SchemaRules;

class TaggedRules {
 public:
  TaggedRules(RuleContext& context, SchemaRules& rules, const TagStyle& style);

  // The parameters of the root, which must be an object.
  Symbol Root(FormulaId root);
  // A known key up to its value or attribute; kNothing where the style cannot write it.
  NodeId KnownKey(const std::string& key, bool is_first);
  // Further keys, given as texts inside of JSON strings.
  NodeId FurtherKeys(NodeId keys, bool is_first);
  // The further key at whose end a text stands.
  bool FindKey(std::string_view text, std::string* key) const;
  // What follows a key.
  Symbol Value(FormulaId formula);
  // What opens an item of a list.
  NodeId open_item() { return context_.pool.Concat(context_.marks.tag_gap, context_.pool.Literal(style_.open_item)); }

 private:
  class ValueOffers;

  // What stands before a key.
  NodeId Before(bool is_first);
  Symbol Quote();
  NodeId Texts(FormulaId formula);
  std::vector<SequenceId> Productions(FormulaId formula);

  RuleContext& context_;
  SchemaRules& rules_;
  const TagStyle& style_;
  Automaton* plain_;  // see MakePlainAutomaton
  SymbolMemo<FormulaId> values_;
};

}  // namespace onpolicy::grammar
