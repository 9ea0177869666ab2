// Interning and simplification of formulas.
#include "grammar/json-schema/shapes/formula.h"

#include <algorithm>
#include <numeric>

namespace onpolicy::grammar {

FormulaTable::FormulaTable() {
  formulas_.push_back({.kind = Formula::kFalse});
  formulas_.push_back({.kind = Formula::kTrue});
}

FormulaId FormulaTable::Intern(Formula formula) {
  Key key{formula.kind, formula.parts, formula.index};
  auto [it, is_new] = index_.emplace(std::move(key), static_cast<FormulaId>(formulas_.size()));
  if (is_new) formulas_.push_back(std::move(formula));
  return it->second;
}

static bool Simplify(std::vector<FormulaId>* parts, FormulaId neutral, FormulaId dominant) {
  std::sort(parts->begin(), parts->end());
  parts->erase(std::unique(parts->begin(), parts->end()), parts->end());
  parts->erase(std::remove(parts->begin(), parts->end(), neutral), parts->end());
  return std::find(parts->begin(), parts->end(), dominant) != parts->end();
}

FormulaId FormulaTable::And(std::vector<FormulaId> parts) {
  std::vector<FormulaId> flat;
  for (FormulaId part : parts) {
    if (formulas_[part].kind == Formula::kAnd) {
      flat.insert(flat.end(), formulas_[part].parts.begin(), formulas_[part].parts.end());
    } else {
      flat.push_back(part);
    }
  }
  if (Simplify(&flat, kTrueFormula, kFalseFormula)) return kFalseFormula;
  for (FormulaId part : flat)
    if (formulas_[part].kind == Formula::kNot && std::binary_search(flat.begin(), flat.end(), formulas_[part].parts[0]))
      return kFalseFormula;
  if (flat.empty()) return kTrueFormula;
  if (flat.size() == 1) return flat[0];
  return Intern({.kind = Formula::kAnd, .parts = std::move(flat)});
}

FormulaId FormulaTable::Or(std::vector<FormulaId> parts) {
  if (Simplify(&parts, kFalseFormula, kTrueFormula) && !keeps_alternatives_) return kTrueFormula;
  if (parts.empty()) return kFalseFormula;
  if (parts.size() == 1) return parts[0];
  return Intern({.kind = Formula::kOr, .parts = std::move(parts)});
}

FormulaId FormulaTable::OneOf(const std::vector<FormulaId>& parts) {
  if (parts.size() == 1) return parts[0];
  return Intern({.kind = Formula::kOneOf, .parts = parts});
}

// Double negations are kept: the inner formula restricts, but does not count as evaluated.
FormulaId FormulaTable::Not(FormulaId inner) {
  if (inner == kFalseFormula) return kTrueFormula;
  if (inner == kTrueFormula) return kFalseFormula;
  return Intern({.kind = Formula::kNot, .parts = {inner}});
}

FormulaId FormulaTable::AtomOf(Atom atom) {
  const bool is_scalar = atom.kind == Atom::kBool || atom.kind == Atom::kNumber || atom.kind == Atom::kString;
  const std::tuple<int, unsigned, NodeId, NodeId> key{atom.kind, atom.mask, atom.node, atom.other};
  if (is_scalar)
    if (const auto known = scalars_.find(key); known != scalars_.end()) return known->second;
  atom.by_key.resize(atom.properties.size());
  std::iota(atom.by_key.begin(), atom.by_key.end(), 0u);
  std::sort(atom.by_key.begin(), atom.by_key.end(), [&](uint32_t a, uint32_t b) { return atom.properties[a].first < atom.properties[b].first; });
  atoms_.push_back(std::make_unique<Atom>(std::move(atom)));
  const FormulaId made = Intern({.kind = Formula::kAtom, .index = static_cast<uint32_t>(atoms_.size() - 1)});
  if (is_scalar) scalars_.emplace(key, made);
  return made;
}

FormulaId FormulaTable::Types(unsigned mask) {
  if (mask == kAllTypes) return kTrueFormula;
  if (mask == 0) return kFalseFormula;
  auto it = types_.find(mask);
  if (it != types_.end()) return it->second;
  return types_[mask] = AtomOf({.kind = Atom::kTypes, .mask = mask});
}

FormulaId FormulaTable::Bools(unsigned mask) { return And({Types(kBoolType), AtomOf({.kind = Atom::kBool, .mask = mask})}); }

FormulaId FormulaTable::Required(const std::string& key) { return AtomOf({.kind = Atom::kRequired, .key = key}); }

FormulaId FormulaTable::Reference(uint32_t schema) {
  return Intern({.kind = Formula::kReference, .index = schema});
}

FormulaId FormulaTable::Unevaluated(FormulaId rest, const FormulaId* members, const FormulaId* items) {
  Formula formula{.kind = Formula::kUnevaluated, .parts = {rest}, .index = static_cast<uint32_t>(formulas_.size())};
  if (members) formula.members = *members;
  if (items) formula.items = *items;
  formula.has_members = members != nullptr;
  formula.has_items = items != nullptr;
  return Intern(std::move(formula));
}

uint32_t FormulaTable::Unannotated(uint32_t index) {
  if (!atoms_[index]->evaluates) return index;
  auto it = unannotated_.find(index);
  if (it != unannotated_.end()) return it->second;
  Atom atom = *atoms_[index];
  atom.evaluates = false;
  atoms_.push_back(std::make_unique<Atom>(std::move(atom)));
  return unannotated_[index] = static_cast<uint32_t>(atoms_.size() - 1);
}

const std::string* FormulaTable::PointerOf(FormulaId formula) const {
  if (const auto found = pointers_.find(formula); found != pointers_.end()) return &found->second;
  for (FormulaId part : formulas_[formula].parts)
    if (const auto found = pointers_.find(part); found != pointers_.end()) return &found->second;
  return nullptr;
}

}  // namespace onpolicy::grammar
