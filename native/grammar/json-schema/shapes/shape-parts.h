// A shape -> its demands on one key, or on the item in one place.
#pragma once
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/spec-error.h"
#include "grammar/json-schema/values.h"

namespace onpolicy::grammar {

// Thrown if a schema has too many combinations. SchemaOptions::reads_any_of may reduce them.
struct UnenforceableSchema : SpecError {
  explicit UnenforceableSchema(std::string where)
      : SpecError("UNSUPPORTED", std::move(where), "the schema's combinations are too many to enforce") {}
};

class ShapeParts {
 public:
  explicit ShapeParts(ValueFormulas& values) : values_(values), formulas_(values.formulas()), pool_(values.pool()) {}

  // Returns the formula that the value of a key must satisfy. Throws UnenforceableSchema if a compilation has spent its work.
  FormulaId MemberFormula(const Shape& shape, const std::string& key);
  // Returns the same for keys that no `properties` names, by the patterns that they match.
  FormulaId FurtherFormula(const Shape& shape, const std::vector<NodeId>& matched);
  // Splits further keys by the set of patterns that they match: calls `visit(keys, formula)` for each set until it returns false.
  template <typename Visit>
  bool ForEachKeyClass(const Shape& shape, NodeId keys, Visit visit) {
    return SplitKeys(shape, Patterns(shape), 0, keys, {}, visit);
  }
  // Returns the keys that `required` or `properties` name.
  std::set<std::string> KnownKeys(const Shape& shape) const;
  // Returns all other keys that an object may have.
  NodeId FurtherKeys(const Shape& shape);
  // Returns the patterns of further keys, each once.
  std::vector<NodeId> Patterns(const Shape& shape) const;
  // Returns true if the key passes all `names`.
  bool AllowsName(const Shape& shape, const std::string& key);
  NodeId KeyNode(const std::string& key) { return values_.strict_text().Text(key); }
  // Returns the formula that the item at an index must satisfy. It is the same from the prefix's length on.
  FormulaId ItemFormula(const Shape& shape, size_t index);
  size_t PrefixLength(const Shape& shape) const;
  // Returns the formulas that the members or items of a shape may have to satisfy.
  std::vector<FormulaId> Children(const Shape& shape);

 private:
  // Ends a branch at a set of patterns that no key matches.
  template <typename Visit>
  bool SplitKeys(const Shape& shape, const std::vector<NodeId>& patterns, size_t at, NodeId keys, std::vector<NodeId> matched,
                 Visit& visit) {
    if (!pool_.IsLive(keys)) return true;
    if (at == patterns.size()) return visit(keys, FurtherFormula(shape, matched));
    if (!SplitKeys(shape, patterns, at + 1, pool_.And({keys, pool_.Not(patterns[at])}), matched, visit)) return false;
    matched.push_back(patterns[at]);
    return SplitKeys(shape, patterns, at + 1, pool_.And({keys, patterns[at]}), std::move(matched), visit);
  }

  ValueFormulas& values_;
  FormulaTable& formulas_;
  RegexPool& pool_;
};

}  // namespace onpolicy::grammar
