// Formulas -> shapes: a disjunction of restrictions of one JSON type each, empty ones left out. Children stay formulas,
// so recursion unfolds only as deep as a document does.
#pragma once
#include <deque>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/scoped-value.h"
#include "json-schema/compile.h"
#include "json-schema/emptiness.h"
#include "json-schema/shape-parts.h"
#include "json-schema/value-count.h"

namespace onpolicy::grammar {

class ShapeTable {
 public:
  explicit ShapeTable(SchemaCompiler& compiler)
      : compiler_(compiler), formulas_(compiler.formulas()), pool_(compiler.values().pool()), parts_(compiler.values()),
        emptiness_(*this, compiler.values(), parts_, assumptions_), count_(*this, compiler.values(), parts_) {}

  const std::vector<Shape>& Of(FormulaId formula);
  // Normalizes what documents of the formula can reach, up to a limit, so that what is too much shows now.
  void Explore(FormulaId root);
  // True when no value satisfies the formula, or the shape.
  bool IsEmpty(FormulaId formula) { return emptiness_.IsEmpty(formula); }
  bool IsShapeEmpty(const Shape& shape) { return emptiness_.IsShapeEmpty(shape); }
  // The same without a look at children: false is sure.
  bool IsPossible(const Shape& shape);
  // How many different values satisfy the formula: see ValueCount.
  uint64_t CountValues(FormulaId formula, uint64_t cap) { return count_.Count(formula, cap); }
  uint64_t CountSureValues(FormulaId formula, uint64_t cap) { return count_.CountSure(formula, cap); }
  ShapeParts& parts() { return parts_; }
  // While this lasts, what counts as evaluated plays no part.
  ScopedValue<bool> WithoutEvaluation() { return {evaluating_, false}; }

 private:
  std::vector<Shape> Normalize(FormulaId formula);
  std::vector<Shape> NormalizeAnd(const std::vector<FormulaId>& parts);
  std::vector<Shape> NormalizeOr(const std::vector<FormulaId>& parts);
  std::vector<Shape> NormalizeOneOf(const std::vector<FormulaId>& parts);
  std::vector<Shape> NormalizeUnevaluated(const Formula& formula);
  std::vector<Shape> NormalizeNot(FormulaId inner);
  std::vector<Shape> NormalizeNegated(const Formula& formula);
  FormulaId WithoutDisjoint(FormulaId negation, const std::vector<FormulaId>& conjunction);
  std::vector<Shape> Union(const std::vector<FormulaId>& formulas);
  std::vector<Shape> Intersect(const std::vector<Shape>& left, const std::vector<Shape>& right);
  Atom UnevaluatedMembers(const Shape& shape, FormulaId rest);
  Atom UnevaluatedItems(const Shape& shape, FormulaId rest);
  bool Apply(uint32_t atom, Shape* shape);
  std::vector<Shape> Tidy(std::vector<Shape> shapes);
  NodeId Names(uint32_t atom);
  bool IsSurelyEmpty(FormulaId formula);
  void Spend();

  SchemaCompiler& compiler_;
  FormulaTable& formulas_;
  RegexPool& pool_;
  ShapeParts parts_;
  Assumptions assumptions_;  // of the answer that is being found
  Emptiness emptiness_;
  ValueCount count_;
  std::unordered_map<FormulaId, std::vector<Shape>> memo_, evaluating_memo_;
  std::set<FormulaId> running_;
  std::deque<std::vector<Shape>> provisional_;
  bool evaluating_ = false;  // inside a schema that looks at what its parts evaluated
  std::unordered_map<uint32_t, NodeId> names_memo_;
  size_t work_ = 0;
};

}  // namespace onpolicy::grammar
