// States of arrays, and the productions of each: one item, or the end. If items must differ, each is read back at the comma behind it and
// added to the seen ones.
#include "grammar/json-schema/array-rules.h"

#include <algorithm>

#include "base/limits.h"
#include "grammar/json-schema/rules.h"
#include "grammar/json/matched-text.h"

namespace onpolicy::grammar {

// Work counted for the productions of a state, in addition to that of the automata.
static constexpr uint64_t kProductionsWork = 2000;

Symbol ArrayRules::Body(const Shape& shape, SeenSet excluded, bool tagged) {
  ArrayState state;
  state.spec = SpecOf(shape, tagged);
  state.met.assign(shape.some.size(), 0);
  state.excluded = excluded;
  return Array(state);
}

uint32_t ArrayRules::SpecOf(const Shape& shape, bool tagged) {
  const auto [known, is_new] = index_.try_emplace({shape, tagged}, static_cast<uint32_t>(specs_.size()));
  const uint32_t number = known->second;
  if (!is_new) return number;
  specs_.emplace_back();
  ArraySpec spec{.shape = shape, .prefix = context_.parts.PrefixLength(shape), .min = shape.min, .max = shape.max};
  spec.tagged = tagged;
  for (uint32_t atom : shape.some) spec.demands.push_back(context_.formulas.atom(atom));
  if (shape.unique && spec.prefix < kCountedValues) {
    // There are at most as many items as different values.
    const uint64_t values = spec.prefix + context_.shapes.count().Count(context_.parts.ItemFormula(shape, spec.prefix));
    if (values < kCountedValues) spec.max = std::min(spec.max, values);
  }
  // If an item can have no value, the array ends before it.
  for (size_t i = 0; i <= spec.prefix && i < spec.max; i++)
    if (context_.shapes.IsEmpty(context_.parts.ItemFormula(shape, i))) spec.max = i;
  spec.count_matters = spec.min > spec.prefix || (spec.max != UINT64_MAX && spec.max > spec.prefix);
  specs_[number] = std::move(spec);
  return number;
}

Symbol ArrayRules::Array(const ArrayState& state) {
  return arrays_.Get(state, [&] {
    return context_.grammar.Rule([this, state](Grammar&) { return Productions(state, false); });
  });
}

bool ArrayRules::CanClose(const ArrayState& state) const {
  const ArraySpec& spec = specs_[state.spec];
  if (state.index < spec.min || context_.seen.HasEmpty(state.excluded)) return false;
  for (size_t i = 0; i < spec.demands.size(); i++)
    if (state.met[i] < spec.demands[i].min) return false;
  return true;
}

// Returns true if the remaining items can still meet the demands.
bool ArrayRules::CanFinish(const ArrayState& state) {
  const ArraySpec& spec = specs_[state.spec];
  for (size_t i = 0; i < spec.demands.size(); i++) {
    const Atom& demand = spec.demands[i];
    if (state.met[i] > demand.max) return false;
    if (state.met[i] < demand.min && !CanMeet(spec, demand, state.index, demand.min - state.met[i])) return false;
  }
  return true;
}

// Returns true if `owed` of the items from `from` on can meet a demand.
bool ArrayRules::CanMeet(const ArraySpec& spec, const Atom& demand, uint64_t from, uint64_t owed) {
  uint64_t possible = 0;
  for (uint64_t i = std::max<uint64_t>(from, demand.mask); i < spec.max && possible < owed; i++) {
    const FormulaId item = context_.parts.ItemFormula(spec.shape, static_cast<size_t>(i));
    const bool fits = !context_.shapes.IsEmpty(context_.formulas.And({item, demand.formula}));
    if (i < spec.prefix) {
      possible += fits;
      continue;
    }
    if (fits) possible = spec.max == UINT64_MAX ? owed : possible + (spec.max - i);
    break;
  }
  return possible >= owed;
}

// Returns true if the array can still become different from all excluded arrays.
bool ArrayRules::CanDiffer(const ArrayState& state) {
  if (state.excluded == 0 || CanClose(state)) return true;
  // The seen values are among those counted.
  const ArraySpec& spec = specs_[state.spec];
  const uint64_t excluded = context_.seen.Size(state.excluded) + context_.seen.Size(state.seen);
  if (state.index < spec.max) {
    const FormulaId item = context_.parts.ItemFormula(spec.shape, static_cast<size_t>(state.index));
    if (context_.shapes.count().CountSure(item) > excluded) return true;
  }
  return !context_.grammar.IsEmptyRule(Array(state));
}

std::vector<SequenceId> ArrayRules::Productions(const ArrayState& state, bool is_item) {
  context_.pool.budget().Spend(kProductionsWork);
  const ArraySpec& spec = specs_[state.spec];
  std::vector<SequenceId> result;
  if (CanClose(state) && !is_item) {
    const Punctuation& marks = context_.marks;
    result.push_back(context_.Sequence(spec.tagged ? marks.tag_gap : state.index == 0 ? marks.close_empty_array : marks.close_array));
  }
  if (state.index < spec.max) AddItems(state, is_item, &result);
  return result;
}

// An item either meets a demand or does not. Only an upper limit makes "does not" a restriction.
void ArrayRules::AddItems(const ArrayState& state, bool is_item, std::vector<SequenceId>* result) {
  const ArraySpec& spec = specs_[state.spec];
  FormulaTable& formulas = context_.formulas;
  const Symbol before = context_.grammar.Terminal(state.index == 0 || is_item ? kEpsilon : context_.marks.comma);
  const FormulaId item = context_.seen.WithoutScalars(
      context_.parts.ItemFormula(spec.shape, static_cast<size_t>(state.index)), state.seen);
  ArrayState next = state;
  // Without counts, all places beyond the prefix are alike; place 0 differs by its missing comma.
  const uint64_t last = spec.max == UINT64_MAX ? spec.min : spec.max;
  if (state.index < (spec.count_matters ? std::max<uint64_t>(last, spec.prefix + 1) : spec.prefix + 1)) next.index++;
  std::vector<size_t> active;
  for (size_t i = 0; i < spec.demands.size(); i++) {
    const Atom& demand = spec.demands[i];
    if (state.index >= demand.mask && (demand.max != UINT64_MAX || state.met[i] < demand.min)) active.push_back(i);
  }
  for (size_t set = 0; set < (size_t{1} << std::min(active.size(), limits::kItemDemands)); set++) {
    std::vector<FormulaId> parts{item};
    ArrayState after = next;
    for (size_t i = 0; i < active.size(); i++) {
      const Atom& demand = spec.demands[active[i]];
      uint64_t& met = after.met[active[i]];
      if ((set >> i) & 1) {
        parts.push_back(demand.formula);
        met = std::min(demand.max == UINT64_MAX ? demand.min : demand.max + 1, met + 1);
      } else if (demand.max != UINT64_MAX) {
        parts.push_back(formulas.Not(demand.formula));
      }
    }
    if (!CanFinish(after)) continue;
    const FormulaId formula = formulas.And(std::move(parts));
    for (const Difference& difference : ItemDifferences(context_.seen, context_.values, formula, state.excluded)) {
      ArrayState then = after;
      SeenSet excluded = difference.value;
      then.excluded = difference.rest;
      if (spec.shape.unique && !state.compares) {
        excluded = context_.seen.WithAll(excluded, context_.seen.Compounds(state.seen));
        if (difference.known) then.seen = context_.seen.With(then.seen, *difference.known);
      }
      AddItem(difference.formula, excluded, then, before, result);
    }
  }
}

void ArrayRules::AddItem(FormulaId formula, SeenSet excluded, const ArrayState& after, Symbol before,
                           std::vector<SequenceId>* result) {
  Grammar& grammar = context_.grammar;
  const ArraySpec& spec = specs_[after.spec];
  if (context_.shapes.IsEmpty(formula)) return;
  if (spec.tagged) {
    result->push_back(context_.Sequence(rules_.tags().open_item(), {rules_.tags().Value(formula), Array(after)}));
    return;
  }
  if ((excluded != 0 && grammar.IsEmptyRule(rules_.Value(formula, excluded))) || !CanDiffer(after)) return;
  if (!spec.shape.unique || !after.compares) {
    const Symbol rest = spec.shape.unique ? UniqueRest(after) : Array(after);
    result->push_back(grammar.Sequence({before, rules_.Value(formula, excluded), rest}));
    return;
  }
  FormulaTable& formulas = context_.formulas;
  const FormulaId compound = formulas.And({formula, formulas.Types(kArrayType | kObjectType)});
  const FormulaId scalar = formulas.And({formula, formulas.Types(kAllTypes & ~(kArrayType | kObjectType))});
  if (!context_.shapes.IsEmpty(scalar)) result->push_back(grammar.Sequence({before, rules_.Value(scalar), UniqueRest(after)}));
  if (!context_.shapes.IsEmpty(compound))
    result->push_back(grammar.Sequence({before, rules_.Value(compound, excluded), AfterComparedItem(after)}));
}

// Sets `value` to the value that ends at `end`. Returns false if there is none.
static bool LastItem(const MatchedText& text, size_t end, JsonValue* value) {
  const size_t start = text.ValueStart(end);
  if (start == std::string_view::npos) return false;
  JsonError error;
  *value = ParseJson(text.view().substr(start, end - start), &error);
  return error.message.empty();
}

Symbol ArrayRules::UniqueRest(const ArrayState& state) {
  return unique_rest_.Get(state, [&] {
    return context_.grammar.Rule([this, state](Grammar&) {
      std::vector<SequenceId> result;
      if (CanClose(state)) result.push_back(context_.Sequence(context_.marks.close_array));
      const bool has_room = context_.seen.Size(state.seen) < limits::kSeenValues || !CanClose(state);
      if (has_room && state.index < specs_[state.spec].max)
        result.push_back(context_.Sequence(context_.marks.bare_comma, {AfterUniqueComma(state)}));
      return result;
    });
  });
}

// The symbol after an array or object that must not repeat: no alternative if it equals an earlier one.
Symbol ArrayRules::AfterComparedItem(const ArrayState& state) {
  return after_compared_.Get(state, [&] {
    const Symbol rest = UniqueRest(state);
    return context_.grammar.Deferred([this, state, rest](Grammar& grammar, const MatchedText& text, Symbol* result) {
      *result = rest;
      if (grammar.assumes_new()) {
        grammar.NoteAssumptions({.ends = 1});
        return true;
      }
      grammar.NoteTextRead();
      JsonValue value;
      return LastItem(text, text.size(), &value) && !context_.seen.Has(state.seen, value);
    });
  });
}

// The symbol after the comma: adds the item before it to the seen ones; the next item must differ from all of them.
Symbol ArrayRules::AfterUniqueComma(const ArrayState& state) {
  return after_comma_.Get(state, [&] {
    return context_.grammar.Deferred([this, state](Grammar& grammar, const MatchedText& text, Symbol* result) {
      ArrayState next = state;
      next.compares = context_.seen.Compounds(state.seen).size() >= limits::kExcludedCompounds;
      // Uses one state for all values that a token may end, because most tokens that continue do not begin the same value again.
      if (grammar.assumes_new() && HasPlenty(state)) {
        grammar.NoteAssumptions({.begins = 1});
      } else {
        grammar.NoteTextRead();
        const size_t comma = text.view().rfind(',');
        JsonValue value;
        if (comma == std::string_view::npos || !LastItem(text, comma, &value)) return false;
        next.seen = context_.seen.With(state.seen, value);
      }
      *result = SpacedItem(next);
      return !grammar.IsEmptyRule(*result);
    });
  });
}

// An item behind a comma, with the blanks before it.
Symbol ArrayRules::SpacedItem(const ArrayState& state) {
  return items_.Get(state, [&] {
    return context_.grammar.Rule([this, state](Grammar&) { return context_.Behind(context_.marks.gap, Productions(state, true)); });
  });
}

bool ArrayRules::HasPlentyOf(FormulaId formula, uint64_t least) {
  const std::vector<Shape>& shapes = context_.shapes.Of(formula);
  const auto is_free = [](const Shape& shape) {
    return (shape.type == kStringType || shape.type == kNumberType) && shape.text == kAnyText;
  };
  return std::any_of(shapes.begin(), shapes.end(), is_free) || context_.shapes.count().CountSure(formula) >= least;
}

// True if the opening characters of an item (a bracket, a quotation mark or both) leave more values than were seen, so
// only continuations of the previous item need a recheck.
bool ArrayRules::HasPlenty(const ArrayState& state) {
  const ArraySpec& spec = specs_[state.spec];
  // A demand without an upper limit does not restrict the next item if the array may have any number of items.
  const auto is_free = [&](const Atom& demand) { return demand.max == UINT64_MAX && spec.max == UINT64_MAX; };
  if (state.excluded != 0 || !std::all_of(spec.demands.begin(), spec.demands.end(), is_free)) return false;
  FormulaTable& formulas = context_.formulas;
  const FormulaId item = context_.parts.ItemFormula(spec.shape, static_cast<size_t>(state.index));
  // The previous value and an empty object do not count as alternatives.
  const uint64_t least = context_.seen.Size(state.seen) + 3;
  bool is_opened = false;
  for (const unsigned type : {kStringType, kArrayType, kObjectType}) {
    const FormulaId of_type = formulas.And({item, formulas.Types(type)});
    if (context_.shapes.IsEmpty(of_type)) continue;
    if (!HasPlentyOf(of_type, least)) return false;
    is_opened = true;
    if (type != kArrayType) continue;
    // A quotation mark may follow the bracket.
    for (const Shape& shape : std::vector<Shape>(context_.shapes.Of(of_type))) {
      if (shape.max == 0 || context_.shapes.IsShapeEmpty(shape)) continue;
      const FormulaId first = formulas.And({context_.parts.ItemFormula(shape, 0), formulas.Types(kStringType)});
      if (!context_.shapes.IsEmpty(first) && (!shape.some.empty() || !HasPlentyOf(first, least))) return false;
    }
  }
  return is_opened || HasPlentyOf(item, least);
}

}  // namespace onpolicy::grammar
