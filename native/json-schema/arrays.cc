// Arrays: what the next item may be, and what the array owes before it may close.
#include <algorithm>

#include "base/spec-error.h"
#include "json-schema/rules.h"
#include "json/text.h"

namespace onpolicy::grammar {

static constexpr uint64_t kManyValues = 1000;
// Beyond this many arrays and objects, a further one is compared with those before it only when it ends.
static constexpr size_t kExcludedCompounds = 60;

Symbol SchemaRules::ArrayBody(const Shape& shape, uint32_t excluded, bool tagged) {
  std::string name;
  for (uint32_t atom : shape.items) name += "i" + std::to_string(atom);
  for (uint32_t atom : shape.some) name += "s" + std::to_string(atom);
  name += "c" + std::to_string(shape.min) + "-" + std::to_string(shape.max) + (shape.unique ? "u" : "") + (tagged ? "t" : "");
  auto [it, is_new] = array_spec_index_.emplace(name, static_cast<uint32_t>(array_specs_.size()));
  if (is_new) {
    array_specs_.emplace_back();
    ArraySpec spec;
    spec.shape = shape;
    spec.prefix = shapes_.parts().PrefixLength(shape);
    spec.min = shape.min;
    spec.max = shape.max;
    spec.unique = shape.unique;
    spec.tagged = tagged;
    spec.demands = shape.some;
    if (shape.unique) {
      // No more items than there are different values.
      uint64_t values = spec.prefix;
      if (values < kManyValues) values += shapes_.CountValues(shapes_.parts().ItemFormula(shape, spec.prefix), kManyValues);
      if (values < kManyValues) spec.max = std::min(spec.max, values);
    }
    // An item that cannot exist ends the array before it.
    for (size_t i = 0; i <= spec.prefix && i < spec.max; i++)
      if (shapes_.IsEmpty(shapes_.parts().ItemFormula(shape, i))) spec.max = i;
    spec.count_matters = spec.min > spec.prefix || (spec.max != UINT64_MAX && spec.max > spec.prefix);
    array_specs_[it->second] = std::move(spec);
  }
  ArrayState state;
  state.spec = it->second;
  state.met.assign(shape.some.size(), 0);
  state.excluded = excluded;
  return Array(state);
}

Symbol SchemaRules::Array(const ArrayState& state) {
  auto it = arrays_.find(state);
  if (it != arrays_.end()) return it->second;
  const Symbol symbol = grammar_.Rule([this, state](Grammar&) { return ArrayProductions(state, false); });
  arrays_.emplace(state, symbol);
  return symbol;
}

// What the productions of a state count as work, beyond that of the automata.
static constexpr uint64_t kProductionsWork = 2000;

// The value that ends at the end of the text; false when there is none.
bool SchemaRules::LastItem(std::string_view text, JsonValue* value) {
  const size_t start = FindValueStart(text, text.size());
  if (start == std::string_view::npos) return false;
  JsonError error;
  *value = ParseJson(text.substr(start), &error);
  return error.message.empty();
}

std::optional<bool> SchemaRules::IsLastSeen(std::string_view text, uint32_t seen_set) const {
  JsonValue value;
  if (!LastItem(text, &value)) return std::nullopt;
  const std::vector<std::string>& keys = value_sets_[seen_set].keys;
  return std::binary_search(keys.begin(), keys.end(), CanonicalKey(value));
}

// Whether all numbers in a value are of a size that can be told from others.
static bool IsWritable(const JsonValue& value) {
  Decimal decimal;
  if (value.IsNumber()) return ParseDecimal(value.text, &decimal);
  return std::all_of(value.items.begin(), value.items.end(), IsWritable) &&
         std::all_of(value.members.begin(), value.members.end(), [](const auto& member) { return IsWritable(member.second); });
}

// After an item that must not repeat: one that was there before ends the reading.
Symbol SchemaRules::AfterUnique(const ArrayState& state) {
  auto it = after_unique_.find(state);
  if (it != after_unique_.end()) return it->second;
  const Symbol rest = UniqueRest(state);
  const Symbol symbol = grammar_.Deferred([this, state, rest](Grammar& grammar, std::string_view text, Symbol* result) {
    *result = rest;
    if (grammar.assumes_new()) {
      grammar.NoteAssumptions({.ends = 1});
      return true;
    }
    grammar.NoteTextRead();
    return IsLastSeen(text, state.seen_set) == false;
  });
  after_unique_.emplace(state, symbol);
  return symbol;
}

Symbol SchemaRules::UniqueRest(const ArrayState& state) {
  auto it = unique_rest_.find(state);
  if (it != unique_rest_.end()) return it->second;
  return unique_rest_[state] = grammar_.Rule([this, state](Grammar& grammar) {
    const ArraySpec& spec = array_specs_[state.spec];
    std::vector<SequenceId> result;
    if (CanCloseArray(state)) result.push_back(grammar.Sequence({grammar.Terminal(close_array_)}));
    if (state.index < spec.max) result.push_back(grammar.Sequence({grammar.Terminal(bare_comma_), AfterUniqueComma(state)}));
    return result;
  });
}

// A number for the seen values and one more.
uint32_t SchemaRules::SeenWith(uint32_t seen_set, const JsonValue& value) {
  std::vector<std::string> keys = value_sets_[seen_set].keys;
  const std::string key = CanonicalKey(value);
  const auto place = std::lower_bound(keys.begin(), keys.end(), key);
  if (place != keys.end() && *place == key) return seen_set;
  keys.insert(place, key);
  const auto [known, is_new] = value_set_index_.emplace(keys, static_cast<uint32_t>(value_sets_.size()));
  if (is_new) {
    ValueSet set = value_sets_[seen_set];
    set.keys = std::move(keys);
    if (value.IsArray() || value.IsObject()) {
      if (IsWritable(value)) set.compounds.push_back(value);
    } else {
      AddScalar(value, &set);
    }
    value_sets_.push_back(std::move(set));
  }
  return known->second;
}

// After the comma: the item before it is read back and joins the seen ones, and the next must differ from all of them.
Symbol SchemaRules::AfterUniqueComma(const ArrayState& state) {
  auto it = after_comma_.find(state);
  if (it != after_comma_.end()) return it->second;
  const Symbol symbol = grammar_.Deferred([this, state](Grammar& grammar, std::string_view text, Symbol* result) {
    // One state for all values that a token may end: most tokens that go on do not begin the same value again.
    ArrayState next = state;
    next.compares = value_sets_[state.seen_set].compounds.size() >= kExcludedCompounds;
    if (grammar.assumes_new() && HasPlenty(state)) {
      grammar.NoteAssumptions({.begins = 1});
      *result = SpacedItem(next);
      return !grammar.IsEmptyRule(*result);
    }
    grammar.NoteTextRead();
    const size_t comma = text.rfind(',');
    JsonValue value;
    if (comma == std::string_view::npos || !LastItem(text.substr(0, comma), &value)) return false;
    next.seen_set = SeenWith(state.seen_set, value);
    *result = SpacedItem(next);
    return !grammar.IsEmptyRule(*result);
  });
  after_comma_.emplace(state, symbol);
  return symbol;
}

// An item behind a comma, with the blanks before it.
Symbol SchemaRules::SpacedItem(const ArrayState& state) {
  auto it = items_.find(state);
  if (it != items_.end()) return it->second;
  const Symbol item = grammar_.Rule([this, state](Grammar&) { return ArrayProductions(state, true); });
  const Symbol spaced = grammar_.Rule([this, item](Grammar& grammar) {
    std::vector<SequenceId> result;
    if (!grammar.IsEmptyRule(item)) result.push_back(grammar.Sequence({grammar.Terminal(gap_), item}));
    return result;
  });
  return items_[state] = spaced;
}

// Whether an item that is only opened, by a bracket, a quotation mark or both, has other values than the seen ones and one
// more: then that one matters to texts alone that go on like it.
bool SchemaRules::HasPlenty(const ArrayState& state) {
  const ArraySpec& spec = array_specs_[state.spec];
  const ValueSet& seen = value_sets_[state.seen_set];
  if (state.excluded != 0 || !spec.demands.empty()) return false;
  const FormulaId item = shapes_.parts().ItemFormula(spec.shape, static_cast<size_t>(state.index));
  // Not counting the value itself and an empty object.
  const uint64_t least = seen.keys.size() + 3;
  const auto is_many = [&](FormulaId formula) {
    const std::vector<Shape>& shapes = shapes_.Of(formula);
    return std::any_of(shapes.begin(), shapes.end(), [](const Shape& shape) {
             return (shape.type == kStringType || shape.type == kNumberType) && shape.text == kAnyText;
           }) || shapes_.CountSureValues(formula, kManyValues) >= least;
  };
  bool is_opened = false;
  for (const unsigned type : {kStringType, kArrayType, kObjectType}) {
    const FormulaId of_type = compiler_.formulas().And({item, compiler_.formulas().Types(type)});
    if (shapes_.IsEmpty(of_type)) continue;
    if (!is_many(of_type)) return false;
    is_opened = true;
    if (type != kArrayType) continue;
    // A quotation mark may follow the bracket.
    for (const Shape& shape : std::vector<Shape>(shapes_.Of(of_type))) {
      if (shape.max == 0 || shapes_.IsShapeEmpty(shape)) continue;
      const FormulaId first = compiler_.formulas().And({shapes_.parts().ItemFormula(shape, 0), compiler_.formulas().Types(kStringType)});
      if (!shapes_.IsEmpty(first) && (!shape.some.empty() || !is_many(first))) return false;
    }
  }
  return is_opened || is_many(item);
}

bool SchemaRules::CanCloseArray(const ArrayState& state) {
  const ArraySpec& spec = array_specs_[state.spec];
  if (state.index < spec.min || ExcludesEmpty(state.excluded)) return false;
  for (size_t i = 0; i < spec.demands.size(); i++)
    if (state.met[i] < compiler_.formulas().atom(spec.demands[i]).min) return false;
  return true;
}

// Whether the demands can still be met by the items to come.
bool SchemaRules::CanFinishArray(const ArrayState& state) {
  const ArraySpec spec = array_specs_[state.spec];
  for (size_t demand = 0; demand < spec.demands.size(); demand++) {
    const Atom& atom = compiler_.formulas().atom(spec.demands[demand]);
    if (state.met[demand] > atom.max) return false;
    if (state.met[demand] >= atom.min) continue;
    const uint64_t owed = atom.min - state.met[demand];
    uint64_t possible = 0;
    for (uint64_t i = std::max<uint64_t>(state.index, atom.mask); i < spec.max && possible < owed; i++) {
      const bool fits = !shapes_.IsEmpty(
          compiler_.formulas().And({shapes_.parts().ItemFormula(spec.shape, static_cast<size_t>(i)), compiler_.formulas().atom(spec.demands[demand]).formula}));
      if (i >= spec.prefix) {
        if (fits) possible = spec.max == UINT64_MAX ? owed : possible + (spec.max - i);
        break;
      }
      possible += fits;
    }
    if (possible < owed) return false;
  }
  return true;
}

FormulaId SchemaRules::ItemOf(const ArrayState& state) {
  const FormulaId item = shapes_.parts().ItemFormula(array_specs_[state.spec].shape, static_cast<size_t>(state.index));
  return WithoutScalars(item, value_sets_[state.seen_set]);
}

std::vector<SequenceId> SchemaRules::ArrayProductions(const ArrayState& state, bool is_item) {
  grammar_.regex().Charge(kProductionsWork);
  const ArraySpec spec = array_specs_[state.spec];
  FormulaTable& formulas = compiler_.formulas();
  std::vector<SequenceId> result;
  const bool first = state.index == 0;
  if (CanCloseArray(state) && !is_item) {
    const NodeId close = first ? close_empty_array_ : close_array_;
    result.push_back(grammar_.Sequence({grammar_.Terminal(spec.tagged ? tag_gap_ : close)}));
  }
  if (state.index >= spec.max) return result;
  const FormulaId item = ItemOf(state);
  ArrayState next = state;
  // Without counts, all places beyond the prefix are alike; place 0 differs by its missing comma.
  if (spec.count_matters ? state.index < std::max(spec.max == UINT64_MAX ? spec.min : spec.max, spec.prefix + uint64_t{1})
                         : state.index < spec.prefix + 1)
    next.index++;
  const std::vector<JsonValue> seen = value_sets_[state.seen_set].compounds;
  const bool is_few = !state.compares;
  const Symbol before = grammar_.Terminal(first || is_item ? kEpsilon : comma_);
  const auto offer = [&](FormulaId formula, uint32_t excluded, const ArrayState& after) {
    if (shapes_.IsEmpty(formula)) return;
    if (spec.tagged) {
      const NodeId open = grammar_.regex().Concat(tag_gap_, grammar_.regex().Literal(tags_->open_item));
      result.push_back(grammar_.Sequence({grammar_.Terminal(open), TaggedValue(formula), Array(after)}));
      return;
    }
    if (spec.unique && is_few && !seen.empty()) {
      std::vector<JsonValue> all = excluded_sets_[excluded];
      all.insert(all.end(), seen.begin(), seen.end());
      excluded = Exclude(std::move(all));
    }
    if ((excluded != 0 && grammar_.IsEmptyRule(Value(formula, excluded))) || !CanDiffer(after)) return;
    if (!spec.unique || is_few) {
      const Symbol rest = spec.unique ? UniqueRest(after) : Array(after);
      result.push_back(grammar_.Sequence({before, Value(formula, excluded), rest}));
      return;
    }
    const FormulaId compound = formulas.And({formula, formulas.Types(kArrayType | kObjectType)});
    const FormulaId scalar = formulas.And({formula, formulas.Types(kAllTypes & ~(kArrayType | kObjectType))});
    if (!shapes_.IsEmpty(scalar)) result.push_back(grammar_.Sequence({before, Value(scalar), UniqueRest(after)}));
    if (!shapes_.IsEmpty(compound))
      result.push_back(grammar_.Sequence({before, Value(compound, excluded), AfterUnique(after)}));
  };
  // Each demand is either met by this item, or it is not; only an upper limit forces "not" to be told.
  std::vector<size_t> active;
  for (size_t i = 0; i < spec.demands.size(); i++) {
    const Atom& atom = formulas.atom(spec.demands[i]);
    if (state.index >= atom.mask && (atom.max != UINT64_MAX || state.met[i] < atom.min)) active.push_back(i);
  }
  for (size_t set = 0; set < (size_t{1} << std::min<size_t>(active.size(), 6)); set++) {
    std::vector<FormulaId> parts{item};
    ArrayState after = next;
    for (size_t i = 0; i < active.size(); i++) {
      const Atom& atom = formulas.atom(spec.demands[active[i]]);
      if ((set >> i) & 1) {
        parts.push_back(atom.formula);
        after.met[active[i]] = std::min(atom.max == UINT64_MAX ? atom.min : atom.max + 1, after.met[active[i]] + 1);
      } else if (atom.max != UINT64_MAX) {
        parts.push_back(formulas.Not(atom.formula));
      }
    }
    if (!CanFinishArray(after)) continue;
    const FormulaId formula = formulas.And(std::move(parts));
    if (state.excluded == 0) {
      offer(formula, 0, after);
      continue;
    }
    for (const Difference& difference : Differences(formula, ItemHeads(state.excluded))) {
      ArrayState then = after;
      then.excluded = difference.rest;
      if (spec.unique && difference.known && is_few) then.seen_set = SeenWith(then.seen_set, *difference.known);
      offer(difference.formula, difference.value, then);
    }
  }
  return result;
}

}  // namespace onpolicy::grammar
