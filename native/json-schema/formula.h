// A JSON Schema as a formula: conjunction, disjunction and negation over atoms, each atom a restriction of one JSON type
// (or of the type itself). Formulas are hash-consed numbers; references stay unresolved names until a value is needed.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "regex/pool.h"

namespace onpolicy::grammar {

using FormulaId = uint32_t;
constexpr FormulaId kFalseFormula = 0;
constexpr FormulaId kTrueFormula = 1;

enum TypeBit : unsigned { kNullType = 1, kBoolType = 2, kNumberType = 4, kStringType = 8, kArrayType = 16, kObjectType = 32 };
constexpr unsigned kAllTypes = 63;

struct Atom {
  enum Kind {
    kTypes,         // `mask`
    kBool,          // booleans: `mask` bit 0 allows false, bit 1 true
    kNumber,        // `node`; negated: `other`
    kString,        // the same, inside the quotes
    kMembers,       // objects: value formulas by key
    kRequired,      // `key`
    kMemberCount,   // `min`..`max`
    kMemberNames,   // every key is in `node`; negated: some key is in `other`
    kSomeMember,    // some member has a key in `node` and a value of `formula`
    kItems,         // arrays: value formulas by index
    kItemCount,     // `min`..`max`
    kUnique,        // no two items are equal
    kSomeItems,     // between `min` and `max` items at index `mask` or later are of `formula`
  } kind = kTypes;
  unsigned mask = 0;
  NodeId node = kNothing, other = kNothing;
  std::string key;
  uint64_t min = 0, max = UINT64_MAX;
  FormulaId formula = kTrueFormula;
  // kMembers
  std::vector<std::pair<std::string, FormulaId>> properties;
  std::vector<std::pair<NodeId, FormulaId>> patterns;
  bool any_order = false;
  // kMembers and kItems: value of what no entry names; `has_rest` when a keyword gave it (it then counts as evaluated)
  std::vector<FormulaId> prefix;
  FormulaId rest = kTrueFormula;
  bool has_rest = false;
  bool evaluates = true;  // false inside a negation
  bool counts_evaluation = false;  // of kSomeItems: what it matched counts as evaluated
};

struct Formula {
  enum Kind { kFalse, kTrue, kAnd, kOr, kNot, kAtom, kReference, kUnevaluated, kOneOf } kind;
  std::vector<FormulaId> parts;  // of And, Or, Not; of Unevaluated: the rest of its schema
  uint32_t index = 0;            // atom, or referenced schema
  FormulaId members = kTrueFormula, items = kTrueFormula;  // of Unevaluated: what it demands of the unevaluated
  bool has_members = false, has_items = false;
};

class FormulaTable {
 public:
  FormulaTable();
  FormulaId And(std::vector<FormulaId> parts);
  FormulaId Or(std::vector<FormulaId> parts);
  // From now on "anything, or this" stays: where unevaluated members or items matter, this may evaluate some.
  void KeepAlternatives() { keeps_alternatives_ = true; }
  FormulaId OneOf(const std::vector<FormulaId>& parts);
  FormulaId Not(FormulaId inner);
  FormulaId AtomOf(Atom atom);
  FormulaId Types(unsigned mask);
  FormulaId Reference(uint32_t schema);
  FormulaId Unevaluated(FormulaId rest, const FormulaId* members, const FormulaId* items);
  // The same atom, but nothing it names counts as evaluated.
  uint32_t Unannotated(uint32_t atom);
  // The negation of an atom as a formula of atoms: no automaton for "not" is left but those over texts. Nothing for
  // kUnique, whose negation is not enforced: no document that breaks the schema is let through, and some that fit are not.
  FormulaId NegatedAtom(uint32_t atom);

  // The negation of a conjunction, as alternatives.
  std::vector<FormulaId> NegatedParts(const std::vector<FormulaId>& parts);
  // Remembers where in the schema a formula comes from; the first place wins.
  void Note(FormulaId formula, const std::string& pointer) { pointers_.emplace(formula, pointer); }
  // That place, or the one of a part; null where none is known.
  const std::string* PointerOf(FormulaId formula) const;

  const Formula& operator[](FormulaId id) const { return formulas_[id]; }
  const Atom& atom(uint32_t index) const { return *atoms_[index]; }
  size_t size() const { return formulas_.size(); }

 private:
  using Key = std::tuple<int, std::vector<FormulaId>, uint32_t>;
  FormulaId Intern(Formula formula);
  FormulaId Some(NodeId keys, FormulaId value);
  FormulaId BrokenMembers(const Atom& atom, const std::set<std::string>& without);

  std::vector<Formula> formulas_;
  std::vector<std::unique_ptr<Atom>> atoms_;
  std::map<Key, FormulaId> index_;
  std::map<unsigned, FormulaId> types_;
  std::map<std::tuple<int, unsigned, NodeId, NodeId>, FormulaId> scalars_;  // atoms of scalars by what they hold
  std::map<uint32_t, uint32_t> unannotated_;
  std::unordered_map<FormulaId, std::string> pointers_;
  bool keeps_alternatives_ = false;
};

}  // namespace onpolicy::grammar
