// A shape has a value unless one of its demands cannot be met.
#include "base/limits.h"
#include "grammar/json-schema/shapes/shape.h"

#include <algorithm>

namespace onpolicy::grammar {

bool ShapeTable::IsEmpty(FormulaId formula) {
  auto known = empty_.find(formula);
  if (known != empty_.end()) return known->second;
  if (!checking_.insert(formula).second) {
    assumptions_.Add({.checking = true});
    return true;
  }
  const InProgress checking{checking_, formula};
  const ScopedValue<bool> plain = WithoutEvaluation();
  const auto [empty, assumed] = assumptions_.AskApart([&] {
    const std::vector<Shape> shapes = Of(formula);
    return std::all_of(shapes.begin(), shapes.end(), [&](const Shape& shape) { return IsShapeEmpty(shape); });
  });
  if (!assumed.running && (!empty || !assumed.checking || checking_.size() == 1)) empty_[formula] = empty;
  assumptions_.Add({.running = assumed.running, .checking = assumed.checking && empty});
  return empty;
}

bool ShapeTable::IsShapeEmpty(const Shape& shape) {
  return !IsPossible(shape) || (shape.type == kObjectType && IsObjectEmpty(shape)) ||
         (shape.type == kArrayType && IsArrayEmpty(shape));
}

bool ShapeTable::IsObjectEmpty(const Shape& shape) {
  if (LacksRequired(shape)) return true;
  for (uint32_t some : shape.some)
    if (shape.max == 0 || !CanMeet(shape, Atom(formulas_.atom(some)))) return true;
  return shape.min > shape.required.size() && LacksKeys(shape);
}

// Returns true if a required key can have no value. If that is certain for one key, the assumptions made for the others do not matter.
bool ShapeTable::LacksRequired(const Shape& shape) {
  bool lacks = false;
  Assumed all;
  for (const std::string& key : shape.required) {
    const auto [has_none, assumed] = assumptions_.AskApart([&] { return !parts_.AllowsName(shape, key) || IsEmpty(parts_.MemberFormula(shape, key)); });
    if (has_none && !assumed.running && !assumed.checking) return true;
    lacks = lacks || has_none;
    all.running = all.running || assumed.running;
    all.checking = all.checking || assumed.checking;
  }
  assumptions_.Add(all);
  return lacks;
}

// Returns true if there are fewer possible keys than the members that the shape demands.
bool ShapeTable::LacksKeys(const Shape& shape) {
  const bool has_rest = std::all_of(shape.members.begin(), shape.members.end(), [&](uint32_t index) {
    const Atom& atom = formulas_.atom(index);
    return atom.rest != kFalseFormula || !atom.patterns.empty();
  });
  const bool has_names = std::all_of(shape.names.begin(), shape.names.end(), [&](NodeId names) { return pool_.IsLive(names); });
  if (has_rest && has_names) return false;
  size_t keys = 0;
  for (const std::string& key : parts_.KnownKeys(shape))
    keys += shape.required.contains(key) || (!IsEmpty(parts_.MemberFormula(shape, key)) && parts_.AllowsName(shape, key));
  return keys < shape.min;
}

// Returns true if some member can have a key and a value of the demand.
bool ShapeTable::CanMeet(const Shape& shape, const Atom& demand) {
  for (const std::string& key : parts_.KnownKeys(shape))
    if (pool_.IsLive(pool_.And({demand.node, parts_.KeyNode(key)})) && parts_.AllowsName(shape, key) &&
        !IsEmpty(formulas_.And({parts_.MemberFormula(shape, key), demand.formula})))
      return true;
  size_t classes = 0;
  bool can_meet = false;
  parts_.ForEachKeyClass(shape, pool_.And({parts_.FurtherKeys(shape), demand.node}), [&](NodeId, FormulaId formula) {
    can_meet = !IsEmpty(formulas_.And({demand.formula, formula}));
    return !can_meet && ++classes < limits::kSearchedClasses;
  });
  return can_meet;
}

bool ShapeTable::IsArrayEmpty(const Shape& shape) {
  const size_t prefix = parts_.PrefixLength(shape);
  if (shape.unique && shape.min > prefix && shape.min < kCountedValues &&
      count_.Count(parts_.ItemFormula(shape, prefix)) + prefix < shape.min)
    return true;
  for (size_t i = 0; i < std::min<uint64_t>(shape.min, prefix + 1); i++)
    if (IsEmpty(parts_.ItemFormula(shape, i))) return true;
  for (uint32_t some : shape.some) {
    const Atom demand = formulas_.atom(some);
    if (demand.min == 0) continue;
    if (demand.min > shape.max) return true;
    uint64_t possible = 0;
    for (size_t i = demand.mask; i <= prefix && i < shape.max; i++) {
      const FormulaId item = parts_.ItemFormula(shape, i);
      if (IsEmpty(item)) break;
      if (IsEmpty(formulas_.And({item, demand.formula}))) continue;
      possible = i == prefix ? UINT64_MAX : possible + 1;
    }
    if (possible < demand.min) return true;
  }
  return false;
}

}  // namespace onpolicy::grammar
