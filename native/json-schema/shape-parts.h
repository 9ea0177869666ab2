// A shape -> what it demands of one key or of the item in one place.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "json-schema/values.h"

namespace onpolicy::grammar {

class ShapeParts {
 public:
  explicit ShapeParts(ValueFormulas& values) : values_(values), formulas_(values.formulas()), pool_(values.pool()) {}

  // What the value of a key must satisfy.
  FormulaId MemberFormula(const Shape& shape, const std::string& key);
  // The same for keys that no `properties` names, by the patterns that they match.
  FormulaId FurtherFormula(const Shape& shape, const std::vector<NodeId>& matched);
  // Further keys by the set of patterns that they match: calls `visit(keys, formula)` for each until it returns false.
  template <typename Visit>
  bool ForEachKeyClass(const Shape& shape, NodeId keys, Visit visit) {
    return SplitKeys(shape, Patterns(shape), 0, keys, {}, visit);
  }
  // Keys that `required` or `properties` name.
  std::set<std::string> KnownKeys(const Shape& shape) const;
  // All others that an object may have.
  NodeId FurtherKeys(const Shape& shape);
  // Patterns of further keys, each once.
  std::vector<NodeId> Patterns(const Shape& shape) const;
  // Whether the key passes all `names`.
  bool AllowsName(const Shape& shape, const std::string& key);
  NodeId KeyNode(const std::string& key) { return values_.strict_text().Text(key); }
  // What the item at an index must satisfy: from the prefix's length on all alike.
  FormulaId ItemFormula(const Shape& shape, size_t index);
  size_t PrefixLength(const Shape& shape) const;
  // Formulas that the members or items of a shape may have to satisfy.
  std::vector<FormulaId> Children(const Shape& shape);

 private:
  // A set of patterns that no key matches ends its branch.
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
