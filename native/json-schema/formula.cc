// Interning and simplification of formulas, and the negation of every kind of atom.
#include "json-schema/formula.h"

#include <algorithm>

namespace onpolicy::grammar {

FormulaTable::FormulaTable() {
  formulas_.push_back({Formula::kFalse, {}, 0, kTrueFormula, kTrueFormula, false, false});
  formulas_.push_back({Formula::kTrue, {}, 0, kTrueFormula, kTrueFormula, false, false});
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
  if (flat.empty()) return kTrueFormula;
  if (flat.size() == 1) return flat[0];
  return Intern({Formula::kAnd, std::move(flat), 0, kTrueFormula, kTrueFormula, false, false});
}

FormulaId FormulaTable::Or(std::vector<FormulaId> parts) {
  if (Simplify(&parts, kFalseFormula, kTrueFormula) && !keeps_alternatives_) return kTrueFormula;
  if (parts.empty()) return kFalseFormula;
  if (parts.size() == 1) return parts[0];
  return Intern({Formula::kOr, std::move(parts), 0, kTrueFormula, kTrueFormula, false, false});
}

FormulaId FormulaTable::OneOf(const std::vector<FormulaId>& parts) {
  if (parts.size() == 1) return parts[0];
  return Intern({Formula::kOneOf, parts, 0, kTrueFormula, kTrueFormula, false, false});
}

// Two negations stay: what they enclose restricts, but does not count as evaluated.
FormulaId FormulaTable::Not(FormulaId inner) {
  if (inner == kFalseFormula) return kTrueFormula;
  if (inner == kTrueFormula) return kFalseFormula;
  return Intern({Formula::kNot, {inner}, 0, kTrueFormula, kTrueFormula, false, false});
}

FormulaId FormulaTable::AtomOf(Atom atom) {
  const bool is_scalar = atom.kind == Atom::kBool || atom.kind == Atom::kNumber || atom.kind == Atom::kString;
  if (is_scalar) {
    const auto [known, is_new] = scalars_.try_emplace({atom.kind, atom.mask, atom.node, atom.other}, kFalseFormula);
    if (!is_new) return known->second;
    atoms_.push_back(std::make_unique<Atom>(std::move(atom)));
    return known->second =
               Intern({Formula::kAtom, {}, static_cast<uint32_t>(atoms_.size() - 1), kTrueFormula, kTrueFormula, false, false});
  }
  atoms_.push_back(std::make_unique<Atom>(std::move(atom)));
  return Intern({Formula::kAtom, {}, static_cast<uint32_t>(atoms_.size() - 1), kTrueFormula, kTrueFormula, false, false});
}

FormulaId FormulaTable::Types(unsigned mask) {
  if (mask == kAllTypes) return kTrueFormula;
  if (mask == 0) return kFalseFormula;
  auto it = types_.find(mask);
  if (it != types_.end()) return it->second;
  Atom atom;
  atom.kind = Atom::kTypes;
  atom.mask = mask;
  return types_[mask] = AtomOf(std::move(atom));
}

FormulaId FormulaTable::Reference(uint32_t schema) {
  return Intern({Formula::kReference, {}, schema, kTrueFormula, kTrueFormula, false, false});
}

FormulaId FormulaTable::Unevaluated(FormulaId rest, const FormulaId* members, const FormulaId* items) {
  Formula formula{Formula::kUnevaluated, {rest}, static_cast<uint32_t>(formulas_.size()), kTrueFormula, kTrueFormula, false, false};
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

FormulaId FormulaTable::Some(NodeId keys, FormulaId value) {
  Atom some;
  some.kind = Atom::kSomeMember;
  some.node = keys;
  some.formula = value;
  return AtomOf(std::move(some));
}

// Some member breaks its own rule, one with a key of `without` left out.
FormulaId FormulaTable::BrokenMembers(const Atom& atom, const std::set<std::string>& without) {
  std::vector<FormulaId> options;
  for (const auto& [key, value] : atom.properties) {
    if (without.contains(key)) continue;
    Atom present, broken;
    present.kind = Atom::kRequired;
    present.key = key;
    broken.kind = Atom::kMembers;
    broken.any_order = true;
    broken.properties.push_back({key, Not(value)});
    options.push_back(And({AtomOf(present), AtomOf(broken)}));
  }
  for (const auto& [node, value] : atom.patterns) options.push_back(Some(node, Not(value)));
  if (atom.rest != kTrueFormula) options.push_back(Some(atom.other, Not(atom.rest)));
  return And({Types(kObjectType), Or(std::move(options))});
}

// A required key whose value is restricted too is "absent or otherwise" in one: half as many alternatives.
std::vector<FormulaId> FormulaTable::NegatedParts(const std::vector<FormulaId>& parts) {
  std::set<std::string> required, joined;
  std::map<std::string, std::vector<FormulaId>> values;
  const auto atom_of = [&](FormulaId part) -> const Atom* {
    return formulas_[part].kind == Formula::kAtom ? atoms_[formulas_[part].index].get() : nullptr;
  };
  for (FormulaId part : parts)
    if (const Atom* atom = atom_of(part); atom && atom->kind == Atom::kRequired) required.insert(atom->key);
  for (FormulaId part : parts)
    if (const Atom* atom = atom_of(part); atom && atom->kind == Atom::kMembers)
      for (const auto& [key, value] : atom->properties)
        if (required.contains(key)) values[key].push_back(value);
  std::vector<FormulaId> result;
  for (auto& [key, all] : values) {
    Atom other;
    other.kind = Atom::kMembers;
    other.any_order = true;
    other.properties.push_back({key, Not(And(std::move(all)))});
    result.push_back(And({Types(kObjectType), AtomOf(std::move(other))}));
    joined.insert(key);
  }
  for (FormulaId part : parts) {
    const Atom* atom = atom_of(part);
    if (atom && atom->kind == Atom::kRequired && joined.contains(atom->key)) continue;
    if (atom && atom->kind == Atom::kMembers && !joined.empty()) {
      result.push_back(BrokenMembers(Atom(*atom), joined));
    } else {
      result.push_back(Not(part));
    }
  }
  return result;
}

const std::string* FormulaTable::PointerOf(FormulaId formula) const {
  if (const auto found = pointers_.find(formula); found != pointers_.end()) return &found->second;
  for (FormulaId part : formulas_[formula].parts)
    if (const auto found = pointers_.find(part); found != pointers_.end()) return &found->second;
  return nullptr;
}

FormulaId FormulaTable::NegatedAtom(uint32_t index) {
  const Atom atom = *atoms_[index];
  Atom flipped = atom;
  switch (atom.kind) {
    case Atom::kTypes:
      return Types(kAllTypes & ~atom.mask);
    case Atom::kBool:
      flipped.mask = ~atom.mask & 3;
      return And({Types(kBoolType), AtomOf(flipped)});
    case Atom::kNumber:
    case Atom::kString:
      std::swap(flipped.node, flipped.other);
      return And({Types(atom.kind == Atom::kNumber ? kNumberType : kStringType), AtomOf(flipped)});
    case Atom::kRequired: {
      Atom absent;
      absent.kind = Atom::kMembers;
      absent.any_order = true;
      absent.properties.push_back({atom.key, kFalseFormula});
      return And({Types(kObjectType), AtomOf(absent)});
    }
    case Atom::kMembers:
      return BrokenMembers(atom, {});
    case Atom::kMemberNames:
      return And({Types(kObjectType), Some(atom.other, kTrueFormula)});
    case Atom::kSomeMember: {
      Atom none;
      none.kind = Atom::kMembers;
      none.patterns.push_back({atom.node, Not(atom.formula)});
      return And({Types(kObjectType), AtomOf(none)});
    }
    case Atom::kMemberCount:
    case Atom::kItemCount: {
      std::vector<FormulaId> options;
      if (atom.min > 0) {
        flipped.min = 0;
        flipped.max = atom.min - 1;
        options.push_back(AtomOf(flipped));
      }
      if (atom.max != UINT64_MAX) {
        flipped.min = atom.max + 1;
        flipped.max = UINT64_MAX;
        options.push_back(AtomOf(flipped));
      }
      return And({Types(atom.kind == Atom::kItemCount ? kArrayType : kObjectType), Or(std::move(options))});
    }
    case Atom::kItems: {
      std::vector<FormulaId> options;
      for (size_t i = 0; i < atom.prefix.size(); i++) {
        if (atom.prefix[i] == kTrueFormula) continue;
        Atom long_enough, broken;
        long_enough.kind = Atom::kItemCount;
        long_enough.min = i + 1;
        broken.kind = Atom::kItems;
        broken.prefix.assign(i, kTrueFormula);
        broken.prefix.push_back(Not(atom.prefix[i]));
        options.push_back(And({AtomOf(long_enough), AtomOf(broken)}));
      }
      if (atom.rest != kTrueFormula) {
        Atom some;
        some.kind = Atom::kSomeItems;
        some.min = 1;
        some.mask = static_cast<unsigned>(atom.prefix.size());
        some.formula = Not(atom.rest);
        options.push_back(AtomOf(some));
      }
      return And({Types(kArrayType), Or(std::move(options))});
    }
    case Atom::kSomeItems: {
      std::vector<FormulaId> options;
      if (atom.min > 0) {
        flipped.min = 0;
        flipped.max = atom.min - 1;
        options.push_back(AtomOf(flipped));
      }
      if (atom.max != UINT64_MAX) {
        flipped.min = atom.max + 1;
        flipped.max = UINT64_MAX;
        options.push_back(AtomOf(flipped));
      }
      return And({Types(kArrayType), Or(std::move(options))});
    }
    case Atom::kUnique:
      break;
  }
  return kFalseFormula;
}

}  // namespace onpolicy::grammar
