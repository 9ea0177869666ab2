// Formulas and shapes -> whether any value satisfies them.
#pragma once
#include <set>
#include <unordered_map>

#include "json-schema/assumptions.h"
#include "json-schema/shape-parts.h"

namespace onpolicy::grammar {

class ShapeTable;

class Emptiness {
 public:
  Emptiness(ShapeTable& shapes, ValueFormulas& values, ShapeParts& parts, Assumptions& assumptions)
      : shapes_(shapes), formulas_(values.formulas()), values_(values), pool_(values.pool()), parts_(parts),
        assumptions_(assumptions) {}

  bool IsEmpty(FormulaId formula);
  bool IsShapeEmpty(const Shape& shape);

 private:
  bool IsObjectEmpty(const Shape& shape);
  bool IsArrayEmpty(const Shape& shape);
  bool LacksRequired(const Shape& shape);
  bool LacksKeys(const Shape& shape);
  bool CanMeet(const Shape& shape, const Atom& demand);

  ShapeTable& shapes_;
  FormulaTable& formulas_;
  ValueFormulas& values_;
  RegexPool& pool_;
  ShapeParts& parts_;
  Assumptions& assumptions_;
  std::unordered_map<FormulaId, bool> known_;
  std::set<FormulaId> checking_;
};

}  // namespace onpolicy::grammar
