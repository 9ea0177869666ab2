// Values that must not come again -> a number for each set of them, and expressions that leave them out. Keys of objects
// and items of arrays alike: a rule's state holds the number, so that equal situations share their rules.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "json-schema/shape.h"

namespace onpolicy::grammar {

using SeenSet = uint32_t;  // 0 is the empty set

class SeenValues {
 public:
  SeenValues(ShapeTable& shapes, ValueFormulas& values) : shapes_(shapes), values_(values) {}

  SeenSet With(SeenSet set, const JsonValue& value) { return WithAll(set, {&value, 1}); }
  SeenSet WithKey(SeenSet set, const std::string& key);
  SeenSet WithAll(SeenSet set, std::span<const JsonValue> values);
  SeenSet Of(std::span<const JsonValue> values) { return WithAll(0, values); }
  // The values of a set that are of a type.
  SeenSet OfType(SeenSet set, JsonValue::Type type);
  size_t Size(SeenSet set) const { return sets_[set].keys.size(); }
  bool Has(SeenSet set, const JsonValue& value) const;
  bool HasKey(SeenSet set, const std::string& key) const;
  // Whether the empty array or object is among them.
  bool HasEmpty(SeenSet set) const;
  // The arrays and objects of a set, without those that hold numbers which are not told apart.
  const std::vector<JsonValue>& Compounds(SeenSet set) const { return sets_[set].compounds; }
  // What satisfies a formula and is none of the scalars of the set.
  FormulaId WithoutScalars(FormulaId formula, SeenSet set);
  // `keys` without the strings of the set.
  NodeId WithoutKeys(NodeId keys, SeenSet set);

 private:
  struct Set {
    std::vector<std::string> keys;       // canonical, sorted
    std::vector<FormulaId> scalars;      // of null and booleans
    std::vector<NodeId> texts, numbers;  // of strings, in all their spellings, and numbers
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

// Values that must differ from given arrays and objects: at each item or member either the difference is made, or what
// comes later must make it. So a repeated value is closed off before its last difference is gone, not at its end.

// One way in which a member or item, and what comes after it, differs from excluded ones.
struct Difference {
  FormulaId formula;
  SeenSet value = 0;               // what the value itself must differ from
  SeenSet rest = 0;                // what is to come must differ from
  std::optional<JsonValue> known;  // the only value of `formula`
};

// For the first item, where the array must be none of `excluded`.
std::vector<Difference> ItemDifferences(SeenValues& seen, ValueFormulas& values, FormulaId item, SeenSet excluded);
// For the member of a key, where the object must be none of `excluded`.
std::vector<Difference> MemberDifferences(SeenValues& seen, ValueFormulas& values, FormulaId member, SeenSet excluded,
                                          const std::string& key);
// The keys of excluded objects.
std::vector<std::string> ExcludedKeys(const SeenValues& seen, SeenSet excluded);

}  // namespace onpolicy::grammar
