// The effect of each kind of atom on a shape, and its negation.
#include "grammar/json-schema/shapes/atom.h"

#include <algorithm>
#include <map>

#include "grammar/json-schema/shapes/formula.h"

namespace onpolicy::grammar {
namespace {

template <typename T>
void AddOnce(std::vector<T>* list, const T& value) {
  if (std::find(list->begin(), list->end(), value) == list->end()) list->push_back(value);
}

template <typename T>
void AddAllOnce(std::vector<T>* list, const std::vector<T>& values) {
  for (const T& value : values) AddOnce(list, value);
}

void Limit(uint64_t min, uint64_t max, Shape* shape) {
  shape->min = std::max(shape->min, min);
  shape->max = std::min(shape->max, max);
}

unsigned TypeOf(Atom::Kind kind) {
  switch (kind) {
    case Atom::kTypes:
      return kAllTypes;
    case Atom::kBool:
      return kBoolType;
    case Atom::kNumber:
      return kNumberType;
    case Atom::kString:
      return kStringType;
    case Atom::kItems:
    case Atom::kItemCount:
    case Atom::kUnique:
    case Atom::kSomeItems:
      return kArrayType;
    default:
      return kObjectType;
  }
}

FormulaId Some(FormulaTable& formulas, NodeId keys, FormulaId value) {
  return formulas.AtomOf({.kind = Atom::kSomeMember, .node = keys, .formula = value});
}

// Returns: the key is absent, or its value satisfies the formula.
FormulaId Member(FormulaTable& formulas, const std::string& key, FormulaId value) {
  return formulas.AtomOf({.kind = Atom::kMembers, .properties = {{key, value}}, .any_order = true});
}

// Returns: some member breaks its own rule. Keys in `without` are ignored.
FormulaId BrokenMembers(FormulaTable& formulas, const Atom& atom, const std::set<std::string>& without) {
  std::vector<FormulaId> options;
  for (const auto& [key, value] : atom.properties) {
    if (without.contains(key)) continue;
    const FormulaId broken = formulas.Not(value), present = formulas.Required(key);
    options.push_back(formulas.And({present, Member(formulas, key, broken)}));
  }
  for (const auto& [node, value] : atom.patterns) options.push_back(Some(formulas, node, formulas.Not(value)));
  if (atom.rest != kTrueFormula) options.push_back(Some(formulas, atom.other, formulas.Not(atom.rest)));
  return formulas.Or(std::move(options));
}

// Returns: some item breaks its own rule.
FormulaId BrokenItems(FormulaTable& formulas, const Atom& atom) {
  std::vector<FormulaId> options;
  for (size_t i = 0; i < atom.prefix.size(); i++) {
    if (atom.prefix[i] == kTrueFormula) continue;
    Atom broken{.kind = Atom::kItems};
    broken.prefix.assign(i, kTrueFormula);
    broken.prefix.push_back(formulas.Not(atom.prefix[i]));
    const FormulaId long_enough = formulas.AtomOf({.kind = Atom::kItemCount, .min = i + 1});
    options.push_back(formulas.And({long_enough, formulas.AtomOf(std::move(broken))}));
  }
  if (atom.rest != kTrueFormula)
    options.push_back(formulas.AtomOf({.kind = Atom::kSomeItems,
                                       .mask = static_cast<unsigned>(atom.prefix.size()),
                                       .min = 1,
                                       .formula = formulas.Not(atom.rest)}));
  return formulas.Or(std::move(options));
}

// Returns: fewer or more than the atom counts.
FormulaId OutsideCount(FormulaTable& formulas, Atom atom) {
  std::vector<FormulaId> options;
  const uint64_t min = atom.min, max = atom.max;
  if (min > 0) {
    atom.min = 0;
    atom.max = min - 1;
    options.push_back(formulas.AtomOf(atom));
  }
  if (max != UINT64_MAX) {
    atom.min = max + 1;
    atom.max = UINT64_MAX;
    options.push_back(formulas.AtomOf(atom));
  }
  return formulas.Or(std::move(options));
}

// Returns the negation for a value of the atom's type.
FormulaId NegatedWithinType(FormulaTable& formulas, Atom atom) {
  switch (atom.kind) {
    case Atom::kNumber:
    case Atom::kString:
      std::swap(atom.node, atom.other);
      return formulas.AtomOf(std::move(atom));
    case Atom::kRequired:
      return Member(formulas, atom.key, kFalseFormula);
    case Atom::kMembers:
      return BrokenMembers(formulas, atom, {});
    case Atom::kSomeMember:
      return formulas.AtomOf({.kind = Atom::kMembers, .patterns = {{atom.node, formulas.Not(atom.formula)}}});
    case Atom::kItems:
      return BrokenItems(formulas, atom);
    case Atom::kMemberCount:
    case Atom::kItemCount:
    case Atom::kSomeItems:
      return OutsideCount(formulas, std::move(atom));
    default:
      return kFalseFormula;
  }
}

}  // namespace

const FormulaId* Atom::Property(std::string_view name) const {
  const auto is_before = [&](uint32_t at, std::string_view other) { return properties[at].first < other; };
  const auto found = std::lower_bound(by_key.begin(), by_key.end(), name, is_before);
  return found != by_key.end() && properties[*found].first == name ? &properties[*found].second : nullptr;
}

FormulaId NegatedAtom(FormulaTable& formulas, uint32_t index) {
  const Atom atom = formulas.atom(index);
  if (atom.kind == Atom::kTypes) return formulas.Types(kAllTypes & ~atom.mask);
  if (atom.kind == Atom::kBool) return formulas.Bools(~atom.mask & 3);
  const FormulaId type = formulas.Types(TypeOf(atom.kind));
  return formulas.And({type, NegatedWithinType(formulas, atom)});
}

// A required key with a restricted value becomes "absent or otherwise" in one formula, which halves the number of alternatives.
std::vector<FormulaId> NegatedParts(FormulaTable& formulas, const std::vector<FormulaId>& parts) {
  const auto atom_of = [&](FormulaId part, Atom::Kind kind) -> const Atom* {
    if (formulas[part].kind != Formula::kAtom) return nullptr;
    const Atom& atom = formulas.atom(formulas[part].index);
    return atom.kind == kind ? &atom : nullptr;
  };
  std::set<std::string> required, joined;
  std::map<std::string, std::vector<FormulaId>> values;
  for (FormulaId part : parts)
    if (const Atom* atom = atom_of(part, Atom::kRequired)) required.insert(atom->key);
  for (FormulaId part : parts)
    if (const Atom* atom = atom_of(part, Atom::kMembers))
      for (const auto& [key, value] : atom->properties)
        if (required.contains(key)) values[key].push_back(value);
  std::vector<FormulaId> result;
  const FormulaId object = formulas.Types(kObjectType);
  for (auto& [key, all] : values) {
    const FormulaId other = formulas.Not(formulas.And(std::move(all)));
    result.push_back(formulas.And({object, Member(formulas, key, other)}));
    joined.insert(key);
  }
  for (FormulaId part : parts) {
    if (const Atom* atom = atom_of(part, Atom::kRequired); atom && joined.contains(atom->key)) continue;
    const Atom* members = joined.empty() ? nullptr : atom_of(part, Atom::kMembers);
    result.push_back(members ? formulas.And({object, BrokenMembers(formulas, *members, joined)}) : formulas.Not(part));
  }
  return result;
}

std::vector<Shape> AllShapes() {
  std::vector<Shape> shapes;
  for (unsigned type = 1; type <= kAllTypes; type <<= 1) shapes.emplace_back().type = type;
  return shapes;
}

bool Narrow(RegexPool& pool, const Atom& atom, uint32_t index, Shape* shape) {
  if (!(TypeOf(atom.kind) & shape->type)) return true;
  switch (atom.kind) {
    case Atom::kTypes:
      return atom.mask & shape->type;
    case Atom::kBool:
      shape->bools &= atom.mask;
      return true;
    case Atom::kNumber:
    case Atom::kString:
      shape->text = pool.And({shape->text, atom.node});
      return true;
    case Atom::kMembers:
      AddOnce(&shape->members, index);
      return true;
    case Atom::kRequired:
      shape->required.insert(atom.key);
      return true;
    case Atom::kMemberCount:
    case Atom::kItemCount:
      Limit(atom.min, atom.max, shape);
      return true;
    case Atom::kSomeMember:
    case Atom::kSomeItems:
      AddOnce(&shape->some, index);
      return true;
    case Atom::kItems:
      AddOnce(&shape->items, index);
      return true;
    case Atom::kUnique:
      shape->unique = true;
      return true;
    case Atom::kMemberNames:
      break;
  }
  return true;
}

void Meet(RegexPool& pool, const Shape& other, Shape* shape) {
  shape->bools &= other.bools;
  shape->text = pool.And({shape->text, other.text});
  AddAllOnce(&shape->members, other.members);
  shape->required.insert(other.required.begin(), other.required.end());
  AddAllOnce(&shape->names, other.names);
  AddAllOnce(&shape->some, other.some);
  AddAllOnce(&shape->items, other.items);
  Limit(other.min, other.max, shape);
  shape->unique = shape->unique || other.unique;
}

bool Covers(const Shape& whole, const Shape& part) {
  const auto has_all = [](const std::vector<uint32_t>& some, const std::vector<uint32_t>& all) {
    return some.size() <= all.size() &&
           std::all_of(some.begin(), some.end(), [&](uint32_t one) { return std::find(all.begin(), all.end(), one) != all.end(); });
  };
  return whole.type == part.type && whole.min <= part.min && whole.max >= part.max && whole.unique <= part.unique &&
         has_all(whole.members, part.members) && has_all(whole.names, part.names) && has_all(whole.some, part.some) &&
         has_all(whole.items, part.items) &&
         std::includes(part.required.begin(), part.required.end(), whole.required.begin(), whole.required.end());
}

}  // namespace onpolicy::grammar
