// Values that must not come again -> a number for each set of them, and expressions that exclude them. Used for keys of objects and items
// of arrays: a rule's state holds the number, so that equal situations share their rules.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "grammar/json-schema/shapes/shape.h"

namespace onpolicy::grammar {

using SeenSet = uint32_t;  // 0 is the empty set

class SeenValues {
 public:
  SeenValues(ShapeTable& shapes, ValueFormulas& values) : shapes_(shapes), values_(values) {}

  SeenSet With(SeenSet set, const JsonValue& value) { return WithAll(set, {&value, 1}); }
  SeenSet WithKey(SeenSet set, const std::string& key);
  SeenSet WithAll(SeenSet set, std::span<const JsonValue> values);
  SeenSet Of(std::span<const JsonValue> values) { return WithAll(0, values); }
  // Returns the values of a set that have a type.
  SeenSet OfType(SeenSet set, JsonValue::Type type);
  size_t Size(SeenSet set) const { return sets_[set].keys.size(); }
  bool Has(SeenSet set, const JsonValue& value) const;
  bool HasKey(SeenSet set, const std::string& key) const;
  // Returns true if the set contains the empty array or object.
  bool HasEmpty(SeenSet set) const;
  // Returns the arrays and objects of a set, except those with numbers that cannot be compared.
  const std::vector<JsonValue>& Compounds(SeenSet set) const { return sets_[set].compounds; }
  // Returns a formula for the values of `formula` other than the scalars of the set.
  FormulaId WithoutScalars(FormulaId formula, SeenSet set);
  // Returns `keys` without the strings of the set.
  NodeId WithoutKeys(NodeId keys, SeenSet set);

 private:
  struct Set {
    std::vector<std::string> keys;       // canonical, sorted
    std::vector<FormulaId> scalars;      // null and booleans
    std::vector<NodeId> texts, numbers;  // strings, in all their spellings, and numbers
    std::vector<JsonValue> compounds;
  };

  void Add(const JsonValue& value, Set* set);
  bool HasShape(FormulaId formula, unsigned type, auto test);
  FormulaId Restricted(FormulaId formula, const Set& set, bool is_spelled);

  ShapeTable& shapes_;
  ValueFormulas& values_;
  std::vector<Set> sets_{{}};
  std::map<std::vector<std::string>, SeenSet> index_{{{}, 0}};  // by keys
};

// Values that must differ from given arrays and objects: each item or member either makes the difference, or leaves it to a later one. A
// repeated value is thus excluded before its last difference is past, not at its end.

// One way in which a member or item, and the rest after it, differs from excluded ones.
struct Difference {
  FormulaId formula;
  SeenSet value = 0;               // set from which the value itself must differ
  SeenSet rest = 0;                // set from which the rest must differ
  std::optional<JsonValue> known;  // the only value of `formula`
};

// Returns the differences for the first item of an array that must not be in `excluded`.
std::vector<Difference> ItemDifferences(SeenValues& seen, ValueFormulas& values, FormulaId item, SeenSet excluded);
// Returns the differences for the member of a key, in an object that must not be in `excluded`.
std::vector<Difference> MemberDifferences(SeenValues& seen, ValueFormulas& values, FormulaId member, SeenSet excluded,
                                          const std::string& key);
// Returns the keys of excluded objects.
std::vector<std::string> ExcludedKeys(const SeenValues& seen, SeenSet excluded);

}  // namespace onpolicy::grammar
