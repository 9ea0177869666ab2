// Arrays in which some item must be repeated (uniqueItems under a negation): what may come while none is yet.
#include <algorithm>

#include "json-schema/rules.h"

namespace onpolicy::grammar {

// In the last place, only the first of so many arrays and objects may be repeated.
static constexpr size_t kRepeatedCompounds = 60;

// After an item, when none was repeated before: this one is, or the array goes on.
Symbol SchemaRules::AfterOwing(const ArrayState& state) {
  auto it = after_owing_.find(state);
  if (it != after_owing_.end()) return it->second;
  ArrayState done = state;
  done.owes = false;
  done.seen_set = 0;
  const Symbol repeated = Array(done), rest = UniqueRest(state);
  const Symbol either = grammar_.Rule([repeated, rest](Grammar& grammar) {
    return std::vector<SequenceId>{grammar.Sequence({repeated}), grammar.Sequence({rest})};
  });
  const Symbol symbol = grammar_.Deferred([this, state, repeated, rest, either](Grammar& grammar, std::string_view text,
                                                                               Symbol* result) {
    if (grammar.trust() == Grammar::Trust::kNew || state.is_unjoined) {
      grammar.NoteGrants({.ends = 1});
      *result = either;
      return true;
    }
    grammar.NoteTextRead();
    const std::optional<bool> is_seen = IsLastSeen(text, state.seen_set);
    if (!is_seen) return false;
    *result = *is_seen ? repeated : rest;
    return true;
  });
  after_owing_.emplace(state, symbol);
  return symbol;
}

// Whether the items from an index on can repeat one another, or a seen one.
bool SchemaRules::CanRepeatLater(const ArrayState& state, uint64_t from) {
  const ArraySpec spec = array_specs_[state.spec];
  if (shapes_.CanRepeat(spec.shape, from, spec.max)) return true;
  const std::vector<JsonValue> seen = value_sets_[state.seen_set].compounds;
  for (uint64_t i = from; i < spec.max && i <= std::max<uint64_t>(from, spec.prefix); i++) {
    const FormulaId item = shapes_.AllowedItem(spec.shape, static_cast<size_t>(i));
    for (const JsonValue& value : seen)
      if (!shapes_.IsEmpty(shapes_.formulas().And({item, compiler_.ValueFormula(value)}))) return true;
  }
  return false;
}

// The item in a place, so that some item can still be repeated: where no other places allow it, the item itself must be
// a seen one, or fit in one of the places to come.
FormulaId SchemaRules::ItemOwing(const ArrayState& state) {
  const FormulaId item = shapes_.ItemFormula(array_specs_[state.spec].shape, static_cast<size_t>(state.index));
  if (CanRepeatLater(state, state.index + 1)) return item;
  const ArraySpec spec = array_specs_[state.spec];
  std::vector<FormulaId> options;
  for (uint64_t i = state.index + 1; i < spec.max && i <= std::max<uint64_t>(state.index + 1, spec.prefix); i++)
    options.push_back(shapes_.AllowedItem(spec.shape, static_cast<size_t>(i)));
  const std::vector<JsonValue> seen = value_sets_[state.seen_set].compounds;
  size_t compounds = 0;
  for (const JsonValue& value : seen)
    if (!(value.IsArray() || value.IsObject()) || ++compounds <= kRepeatedCompounds) options.push_back(compiler_.ValueFormula(value));
  return shapes_.formulas().And({item, shapes_.formulas().Or(std::move(options))});
}

}  // namespace onpolicy::grammar
