// A formula -> how many different values satisfy it, up to kManyValues.
#pragma once
#include <unordered_map>

#include "json-schema/shape-parts.h"

namespace onpolicy::grammar {

class ShapeTable;

// More values than this are not counted.
constexpr uint64_t kManyValues = 1000;

class ValueCount {
 public:
  ValueCount(ShapeTable& shapes, ValueFormulas& values, ShapeParts& parts)
      : shapes_(shapes), formulas_(values.formulas()), values_(values), pool_(values.pool()), parts_(parts) {}

  // At most `cap`, which is at most kManyValues; what cannot be told counts as many.
  uint64_t Count(FormulaId formula, uint64_t cap);
  // The same, where what cannot be told counts as none.
  uint64_t CountSure(FormulaId formula, uint64_t cap);

 private:
  uint64_t OfShape(const Shape& shape);
  uint64_t Scalars(const Shape& shape);
  uint64_t Arrays(const Shape& shape);
  uint64_t Objects(const Shape& shape);
  NodeId PlainSpellings();

  ShapeTable& shapes_;
  FormulaTable& formulas_;
  ValueFormulas& values_;
  RegexPool& pool_;
  ShapeParts& parts_;
  std::unordered_map<FormulaId, uint64_t> counts_, sure_counts_;
  bool is_sure_ = false;  // what cannot be told counts as none
  int depth_ = 0;
};

}  // namespace onpolicy::grammar
