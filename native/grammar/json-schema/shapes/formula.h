// A JSON Schema as a formula: conjunction, disjunction and negation over atoms. Formulas are hash-consed numbers;
// references stay unresolved until a value is needed.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "grammar/json-schema/shapes/atom.h"

namespace onpolicy::grammar {

struct Formula {
  enum Kind { kFalse, kTrue, kAnd, kOr, kNot, kAtom, kReference, kUnevaluated, kOneOf } kind = kFalse;
  std::vector<FormulaId> parts = {};  // parts of And, Or, Not, OneOf; Unevaluated: the rest of its schema
  uint32_t index = 0;                 // atom, or reference
  FormulaId members = kTrueFormula, items = kTrueFormula;  // Unevaluated: formulas that unevaluated members and items must satisfy
  bool has_members = false, has_items = false;
};

class FormulaTable {
 public:
  FormulaTable();
  FormulaId And(std::vector<FormulaId> parts);
  FormulaId Or(std::vector<FormulaId> parts);
  // From now on keeps "anything, or this": where unevaluated members or items matter, the second part may evaluate some.
  void KeepAlternatives() { keeps_alternatives_ = true; }
  FormulaId OneOf(const std::vector<FormulaId>& parts);
  FormulaId Not(FormulaId inner);
  FormulaId AtomOf(Atom atom);
  FormulaId Types(unsigned mask);
  FormulaId Bools(unsigned mask);
  FormulaId Required(const std::string& key);
  FormulaId Reference(uint32_t schema);
  FormulaId Unevaluated(FormulaId rest, const FormulaId* members, const FormulaId* items);
  // Returns the same atom, without evaluating what it names.
  uint32_t Unannotated(uint32_t atom);
  // Records where in the schema a formula comes from. The first place is kept.
  void Note(FormulaId formula, const std::string& pointer) { pointers_.emplace(formula, pointer); }
  // Returns that place, or the place of a part; null if none is known.
  const std::string* PointerOf(FormulaId formula) const;

  const Formula& operator[](FormulaId id) const { return formulas_[id]; }
  size_t size() const { return formulas_.size(); }
  const Atom& atom(uint32_t index) const { return *atoms_[index]; }

 private:
  using Key = std::tuple<int, std::vector<FormulaId>, uint32_t>;
  FormulaId Intern(Formula formula);

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
