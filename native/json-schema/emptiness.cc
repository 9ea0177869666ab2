// Whether any value satisfies a formula, and a look at all that documents can reach.
#include <algorithm>

#include "base/scoped-value.h"
#include "base/spec-error.h"
#include "json-schema/shape.h"

namespace onpolicy::grammar {

// So many formulas are looked at before the first document.
static constexpr size_t kMaxExplored = 3000;

bool ShapeTable::IsEmpty(FormulaId formula) {
  auto known = empty_.find(formula);
  if (known != empty_.end()) return known->second;
  if (!checking_.insert(formula).second) {
    leans_.on_checking = true;
    return true;
  }
  struct Check {
    std::set<FormulaId>& all;
    FormulaId formula;
    ~Check() { all.erase(formula); }
  };
  const Check check{checking_, formula};
  const ScopedValue<bool> annotating(annotating_, false);
  const auto [empty, leans] = AskApart([&] {
    const std::vector<Shape> shapes = Of(formula);
    return std::all_of(shapes.begin(), shapes.end(), [&](const Shape& shape) { return IsShapeEmpty(shape); });
  });
  if (!leans.on_running && (!empty || !leans.on_checking || checking_.size() == 1)) empty_[formula] = empty;
  LeanOn({.on_running = leans.on_running, .on_checking = leans.on_checking && empty});
  return empty;
}

// Formulas that the members or items of a shape may have to satisfy.
std::vector<FormulaId> ShapeTable::Children(const Shape& shape) {
  std::vector<FormulaId> result;
  if (shape.type == kArrayType) {
    for (size_t i = 0; i <= PrefixLength(shape); i++) result.push_back(ItemFormula(shape, i));
  } else if (shape.type == kObjectType) {
    const bool is_single = shape.members.size() == 1 && formulas_.atom(shape.members[0]).patterns.empty();
    std::vector<FormulaId> rests;
    for (uint32_t index : shape.members) {
      const Atom& atom = formulas_.atom(index);
      rests.push_back(atom.rest);
      for (const auto& [key, value] : atom.properties) result.push_back(is_single ? value : MemberFormula(shape, key));
      for (const auto& [node, value] : atom.patterns) result.push_back(value);
    }
    result.push_back(formulas_.And(std::move(rests)));
  }
  const std::vector<FormulaId> values = shape.some.empty() ? std::vector<FormulaId>{} : result;
  for (uint32_t some : shape.some) {
    const FormulaId demand = formulas_.atom(some).formula;
    const bool is_limited = formulas_.atom(some).max != UINT64_MAX;
    for (FormulaId value : values) {
      result.push_back(formulas_.And({value, demand}));
      if (is_limited) result.push_back(formulas_.And({value, formulas_.Not(demand)}));
    }
  }
  return result;
}

void ShapeTable::Explore(FormulaId root) {
  std::set<FormulaId> seen{root};
  std::vector<FormulaId> open{root};
  for (size_t i = 0; i < open.size() && i < kMaxExplored; i++)
    for (const Shape& shape : std::vector<Shape>(Of(open[i])))
      for (FormulaId child : Children(shape))
        if (seen.insert(child).second) open.push_back(child);
}

// Whether some member can have a key and a value of the demand.
bool ShapeTable::CanMeet(const Shape& shape, const Atom& given) {
  const Atom demand = given;
  std::set<std::string> known = shape.required;
  std::vector<NodeId> patterns;
  for (uint32_t index : shape.members) {
    for (const auto& [key, value] : formulas_.atom(index).properties) known.insert(key);
    for (const auto& [node, value] : formulas_.atom(index).patterns) patterns.push_back(node);
  }
  std::vector<NodeId> texts;
  for (const std::string& key : known) {
    texts.push_back(KeyNode(key));
    if (pool().IsLive(pool().And({demand.node, texts.back()})) && AllowsName(shape, key) &&
        !IsEmpty(formulas_.And({MemberFormula(shape, key), demand.formula})))
      return true;
  }
  std::vector<NodeId> base{compiler_.values().strict_text().AnyText(), demand.node, pool().Not(pool().Alternate(std::move(texts)))};
  base.insert(base.end(), shape.names.begin(), shape.names.end());
  // Further keys, by the set of patterns that they match.
  struct Open {
    size_t at;
    NodeId keys;
    std::set<NodeId> matched;
  };
  std::vector<Open> open{{0, pool().And(std::move(base)), {}}};
  for (size_t steps = 0; !open.empty() && steps < 600; steps++) {
    Open entry = std::move(open.back());
    open.pop_back();
    if (!pool().IsLive(entry.keys)) continue;
    if (entry.at < patterns.size()) {
      const NodeId pattern = patterns[entry.at++];
      Open with = entry;
      with.keys = pool().And({entry.keys, pattern});
      with.matched.insert(pattern);
      entry.keys = pool().And({entry.keys, pool().Not(pattern)});
      open.push_back(std::move(with));
      open.push_back(std::move(entry));
      continue;
    }
    std::vector<FormulaId> parts{demand.formula};
    for (uint32_t index : shape.members) {
      const Atom& atom = formulas_.atom(index);
      bool named = false;
      for (const auto& [node, value] : atom.patterns)
        if (entry.matched.contains(node)) {
          parts.push_back(value);
          named = true;
        }
      if (!named) parts.push_back(atom.rest);
    }
    if (!IsEmpty(formulas_.And(std::move(parts)))) return true;
  }
  return false;
}

// Whether a required key can have no value. One for which that is sure settles it, whatever the others lean on.
bool ShapeTable::LacksRequired(const Shape& shape) {
  bool lacks = false;
  Leans all;
  for (const std::string& key : shape.required) {
    const auto [has_none, leans] = AskApart([&] { return !AllowsName(shape, key) || IsEmpty(MemberFormula(shape, key)); });
    if (has_none && !leans.on_running && !leans.on_checking) return true;
    lacks = lacks || has_none;
    all.on_running = all.on_running || leans.on_running;
    all.on_checking = all.on_checking || leans.on_checking;
  }
  LeanOn(all);
  return lacks;
}

bool ShapeTable::IsShapeEmpty(const Shape& shape) {
  if (!IsPossible(shape)) return true;
  if (shape.type == kObjectType) {
    if (LacksRequired(shape)) return true;
    for (uint32_t some : shape.some)
      if (shape.max == 0 || !CanMeet(shape, formulas_.atom(some))) return true;
    if (shape.min > shape.required.size()) {
      // Enough other keys?
      bool open = true;
      std::set<std::string> keys = shape.required;
      for (uint32_t index : shape.members) {
        open = open && formulas_.atom(index).rest != kFalseFormula;
        if (!formulas_.atom(index).patterns.empty()) open = true;
        for (const auto& [key, value] : formulas_.atom(index).properties)
          if (!IsEmpty(MemberFormula(shape, key)) && AllowsName(shape, key)) keys.insert(key);
      }
      for (NodeId names : shape.names)
        if (!pool().IsLive(names)) open = false;
      if (!open && keys.size() < shape.min) return true;
    }
  }
  if (shape.type == kArrayType) {
    const size_t prefix = PrefixLength(shape);
    if (shape.unique && shape.min > prefix && shape.min < 1000 &&
        CountValues(ItemFormula(shape, prefix), 1000) + prefix < shape.min)
      return true;
    for (size_t i = 0; i < std::min<uint64_t>(shape.min, prefix + 1); i++)
      if (IsEmpty(ItemFormula(shape, i))) return true;
    for (uint32_t some : shape.some) {
      const Atom& atom = formulas_.atom(some);
      if (atom.min == 0) continue;
      if (atom.min > shape.max) return true;
      uint64_t possible = 0;
      for (size_t i = atom.mask; i <= prefix && i < shape.max; i++) {
        const FormulaId item = ItemFormula(shape, i);
        if (IsEmpty(item)) break;
        if (IsEmpty(formulas_.And({item, atom.formula}))) continue;
        possible = i == prefix ? UINT64_MAX : possible + 1;
      }
      if (possible < atom.min) return true;
    }
  }
  return false;
}

}  // namespace onpolicy::grammar
