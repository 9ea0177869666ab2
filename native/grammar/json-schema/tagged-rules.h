// Tagged parameters: the members of an object as tags whose values are unescaped texts, or JSON.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "grammar/json-schema/rule-context.h"

namespace onpolicy::grammar {

class SchemaRules;

class TaggedRules {
 public:
  TaggedRules(RuleContext& context, SchemaRules& rules, const TagStyle& style);

  // Returns the parameters of the root, which must be an object.
  Symbol Root(FormulaId root);
  // Returns a known key up to its value or attribute, or kNothing if the style cannot write it.
  NodeId KnownKey(const std::string& key, bool is_first);
  // Returns further keys, given as texts inside JSON strings.
  NodeId FurtherKeys(NodeId keys, bool is_first);
  // Finds the further key at the end of a text.
  bool FindKey(std::string_view text, std::string* key) const;
  // Returns the symbol after a key.
  Symbol Value(FormulaId formula);
  // Returns the opening of a list item.
  NodeId open_item() { return context_.pool.Concat(context_.marks.tag_gap, context_.pool.Literal(style_.open_item)); }

 private:
  class ValueProductions;

  // Returns the text before a key.
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
