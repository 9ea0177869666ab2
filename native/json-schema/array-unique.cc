// Arrays whose items must differ: each item is read back at the comma behind it, and joins the seen ones.
#include <algorithm>

#include "json-schema/array-rules.h"
#include "json/text.h"

namespace onpolicy::grammar {

static constexpr uint64_t kManyValues = 1000;
// Beyond this many arrays and objects, a further one is compared with those before it only when it ends.
static constexpr size_t kExcludedCompounds = 60;

// The value that ends at the end of the text; false when there is none.
static bool LastItem(std::string_view text, JsonValue* value) {
  const size_t start = FindValueStart(text, text.size());
  if (start == std::string_view::npos) return false;
  JsonError error;
  *value = ParseJson(text.substr(start), &error);
  return error.message.empty();
}

Symbol ArrayRules::UniqueRest(const ArrayState& state) {
  return unique_rest_.Get(state, [&] {
    return context_.grammar.Rule([this, state](Grammar&) {
      std::vector<SequenceId> result;
      if (CanClose(state)) result.push_back(context_.Sequence(context_.marks.close_array));
      if (state.index < specs_[state.spec].max)
        result.push_back(context_.Sequence(context_.marks.bare_comma, {AfterUniqueComma(state)}));
      return result;
    });
  });
}

// After an array or object that must not repeat: one that was there before ends the alternative.
Symbol ArrayRules::AfterComparedItem(const ArrayState& state) {
  return after_compared_.Get(state, [&] {
    const Symbol rest = UniqueRest(state);
    return context_.grammar.Deferred([this, state, rest](Grammar& grammar, std::string_view text, Symbol* result) {
      *result = rest;
      if (grammar.assumes_new()) {
        grammar.NoteAssumptions({.ends = 1});
        return true;
      }
      grammar.NoteTextRead();
      JsonValue value;
      return LastItem(text, &value) && !context_.seen.Has(state.seen, value);
    });
  });
}

// After the comma: the item before it joins the seen ones, and the next must differ from all of them.
Symbol ArrayRules::AfterUniqueComma(const ArrayState& state) {
  return after_comma_.Get(state, [&] {
    return context_.grammar.Deferred([this, state](Grammar& grammar, std::string_view text, Symbol* result) {
      ArrayState next = state;
      next.compares = context_.seen.Compounds(state.seen).size() >= kExcludedCompounds;
      // One state for all values that a token may end: most tokens that go on do not begin the same value again.
      if (grammar.assumes_new() && HasPlenty(state)) {
        grammar.NoteAssumptions({.begins = 1});
      } else {
        grammar.NoteTextRead();
        const size_t comma = text.rfind(',');
        JsonValue value;
        if (comma == std::string_view::npos || !LastItem(text.substr(0, comma), &value)) return false;
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
    const Symbol item = context_.grammar.Rule([this, state](Grammar&) { return Productions(state, true); });
    return context_.grammar.Rule([this, item](Grammar& grammar) {
      std::vector<SequenceId> result;
      if (!grammar.IsEmptyRule(item)) result.push_back(context_.Sequence(context_.marks.gap, {item}));
      return result;
    });
  });
}

bool ArrayRules::HasPlentyOf(FormulaId formula, uint64_t least) {
  const std::vector<Shape>& shapes = context_.shapes.Of(formula);
  const auto is_free = [](const Shape& shape) {
    return (shape.type == kStringType || shape.type == kNumberType) && shape.text == kAnyText;
  };
  return std::any_of(shapes.begin(), shapes.end(), is_free) || context_.shapes.CountSureValues(formula, kManyValues) >= least;
}

// True if the opening characters of an item (a bracket, a quotation mark or both) leave more values than were seen, so
// only continuations of the previous item need a recheck.
bool ArrayRules::HasPlenty(const ArrayState& state) {
  const ArraySpec& spec = specs_[state.spec];
  if (state.excluded != 0 || !spec.demands.empty()) return false;
  FormulaTable& formulas = context_.formulas;
  const FormulaId item = context_.parts.ItemFormula(spec.shape, static_cast<size_t>(state.index));
  // Not counting the value itself and an empty object.
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
