// Atoms: restrictions of one JSON type each, and the shapes that they narrow. Only the functions of this file depend on the meaning of each
// kind of atom.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/regex/pool.h"

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
  std::string key = {};
  uint64_t min = 0, max = UINT64_MAX;
  FormulaId formula = kTrueFormula;
  // kMembers
  std::vector<std::pair<std::string, FormulaId>> properties = {};  // equal keys have equal values
  std::vector<uint32_t> by_key = {};  // properties in the order of their keys; FormulaTable::AtomOf sets it
  std::vector<std::pair<NodeId, FormulaId>> patterns = {};
  bool any_order = false;
  // kMembers and kItems: formula for the values that no entry names. `has_rest`: a keyword gave it, so that these values count as
  // evaluated.
  std::vector<FormulaId> prefix = {};
  FormulaId rest = kTrueFormula;
  bool has_rest = false;
  bool evaluates = true;  // false inside a negation
  bool counts_evaluation = false;  // kSomeItems: the matched items count as evaluated

  // Returns the schema that `properties` has for a key; null if it does not name the key.
  const FormulaId* Property(std::string_view key) const;
};

// A restriction of one JSON type: atoms that hold together. Children stay formulas.
struct Shape {
  unsigned type = 0;               // one TypeBit
  unsigned bools = 3;              // boolean: bit 0 allows false, bit 1 true
  NodeId text = kAnyText;          // number or string: its language; kAnyText: unrestricted
  std::vector<uint32_t> members;   // atoms of an object, in order of appearance
  std::set<std::string> required;
  std::vector<NodeId> names;       // every key is in all of these languages
  std::vector<uint32_t> some;      // atoms: some member, or some items, must match
  std::vector<uint32_t> items;     // atoms of an array
  uint64_t min = 0, max = UINT64_MAX;  // members or items
  bool unique = false;  // no two items of an array are equal
  bool operator==(const Shape&) const = default;
  // Returns true if the shape has a demand that may be impossible to meet.
  bool MayFail() const { return !some.empty() || !names.empty() || min > 0 || unique; }
};

// Returns one unrestricted shape of each type.
std::vector<Shape> AllShapes();

class FormulaTable;

// Returns the negation of an atom as a formula of atoms; only languages of texts are negated by automata. Returns kFalseFormula for
// kUnique, whose negation is not enforced: every value that passes is valid, but some valid ones do not pass. Not for kMemberNames, whose
// keys ShapeTable finds.
FormulaId NegatedAtom(FormulaTable& formulas, uint32_t atom);
// Returns the negation of a conjunction, as alternatives.
std::vector<FormulaId> NegatedParts(FormulaTable& formulas, const std::vector<FormulaId>& parts);

// Narrows a shape by an atom that is about its type, or is kTypes. Returns false if no value is left. Not for kMemberNames.
bool Narrow(RegexPool& pool, const Atom& atom, uint32_t index, Shape* shape);
// Narrows a shape by another of the same type.
void Meet(RegexPool& pool, const Shape& other, Shape* shape);
// Returns true if `part`, of arrays or objects, makes every demand that `whole` makes: all values of `part` are then values of `whole`.
bool Covers(const Shape& whole, const Shape& part);

}  // namespace onpolicy::grammar
