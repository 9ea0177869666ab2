// Shapes of arrays -> rules: the possible next items, and the demands that are still unmet. A rule's state holds what a grammar cannot
// count: the number of items, how many of them met each demand, and the values seen.
#pragma once
#include <compare>
#include <deque>
#include <vector>

#include "grammar/json-schema/rule-context.h"

namespace onpolicy::grammar {

class SchemaRules;

struct ArraySpec {
  Shape shape;
  size_t prefix = 0;
  uint64_t min = 0, max = UINT64_MAX;
  std::vector<Atom> demands = {};
  bool count_matters = false;
  bool tagged = false;  // items are tagged parameters without a key
};

struct ArrayState {
  uint32_t spec = 0;
  uint64_t index = 0;  // does not exceed the prefix's end unless counts matter
  std::vector<uint64_t> met;
  SeenSet seen = 0;
  SeenSet excluded = 0;   // arrays from which the remaining items must differ
  bool compares = false;  // there may be many arrays and objects, so they are compared with the seen ones when they end
  auto operator<=>(const ArrayState&) const = default;
};

class ArrayRules {
 public:
  ArrayRules(RuleContext& context, SchemaRules& rules) : context_(context), rules_(rules) {}

  // Returns the rest of an array after its opening bracket, for arrays that are not in `excluded`.
  Symbol Body(const Shape& shape, SeenSet excluded, bool tagged = false);

 private:
  uint32_t SpecOf(const Shape& shape, bool tagged);
  Symbol Array(const ArrayState& state);
  std::vector<SequenceId> Productions(const ArrayState& state, bool is_item);
  void AddItems(const ArrayState& state, bool is_item, std::vector<SequenceId>* result);
  void AddItem(FormulaId formula, SeenSet excluded, const ArrayState& after, Symbol before, std::vector<SequenceId>* result);
  bool CanClose(const ArrayState& state) const;
  bool CanFinish(const ArrayState& state);
  bool CanMeet(const ArraySpec& spec, const Atom& demand, uint64_t from, uint64_t owed);
  bool CanDiffer(const ArrayState& state);
  // Rules of arrays whose items must differ.
  Symbol UniqueRest(const ArrayState& state);
  Symbol AfterUniqueComma(const ArrayState& state);
  Symbol AfterComparedItem(const ArrayState& state);
  Symbol SpacedItem(const ArrayState& state);
  bool HasPlenty(const ArrayState& state);
  bool HasPlentyOf(FormulaId formula, uint64_t least);

  RuleContext& context_;
  SchemaRules& rules_;
  std::deque<ArraySpec> specs_;
  SpecIndex index_;
  SymbolMemo<ArrayState> arrays_, items_, unique_rest_, after_compared_, after_comma_;
};

}  // namespace onpolicy::grammar
