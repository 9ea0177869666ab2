// Formulas -> shapes: a disjunction of restrictions of one JSON type each, without empty ones. Children stay formulas, so that recursion
// unfolds only as deep as a document.
#pragma once
#include <deque>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/scoped-value.h"
#include "grammar/json-schema/compile.h"
#include "grammar/json-schema/shapes/shape-parts.h"

namespace onpolicy::grammar {

using limits::kCountedValues;

class ShapeTable;

// Unfinished work whose result an answer assumed. Such an answer may change once the result is known.
struct Assumed {
  bool running = false;   // assumed that a formula that is being normalized has no shapes
  bool checking = false;  // assumed that a formula whose emptiness is being checked is empty
};

class Assumptions {
 public:
  void Add(const Assumed& more) {
    now_.running = now_.running || more.running;
    now_.checking = now_.checking || more.checking;
  }
  // Returns the answer of `ask` and its assumptions, which are not added to those of the answer in progress.
  template <typename Ask>
  std::pair<bool, Assumed> AskApart(Ask ask) {
    const Assumed outer = std::exchange(now_, {});
    const bool answer = ask();
    return {answer, std::exchange(now_, outer)};
  }
  // Returns true if `work` makes an assumption about running work. Its assumptions about checks are added to those of the answer in
  // progress.
  template <typename Work>
  bool AssumesRunning(Work work) {
    const bool outer = std::exchange(now_.running, false);
    work();
    return std::exchange(now_.running, outer);
  }
  // Returns true if `ask` returns true without assumptions.
  template <typename Ask>
  bool IsSurely(Ask ask) {
    const auto [answer, assumed] = AskApart(ask);
    Add({.running = assumed.running});
    return answer && !assumed.running && !assumed.checking;
  }

 private:
  Assumed now_;
};

// Removes a formula from those in progress at the end of the scope.
struct InProgress {
  std::set<FormulaId>& all;
  FormulaId formula;
  ~InProgress() { all.erase(formula); }
};

// A formula -> the number of different values that satisfy it.
class ValueCount {
 public:
  ValueCount(ShapeTable& shapes, ValueFormulas& values, ShapeParts& parts)
      : shapes_(shapes), values_(values), pool_(values.pool()), parts_(parts) {}

  // Returns at most kCountedValues, also if the number cannot be determined.
  uint64_t Count(FormulaId formula);
  // Returns a lower bound: values that cannot be counted count as none.
  uint64_t CountSure(FormulaId formula);

 private:
  uint64_t OfShape(const Shape& shape);
  uint64_t Scalars(const Shape& shape);
  uint64_t Arrays(const Shape& shape);
  uint64_t Objects(const Shape& shape);
  // Returns true if an object may have a key other than the known ones, or if that cannot be decided.
  bool MayHaveFurther(const Shape& shape);
  NodeId PlainSpellings();

  ShapeTable& shapes_;
  ValueFormulas& values_;
  RegexPool& pool_;
  ShapeParts& parts_;
  std::unordered_map<FormulaId, uint64_t> counts_, sure_counts_;
  bool is_sure_ = false;  // values that cannot be counted count as none
  int depth_ = 0;
};

class ShapeTable {
 public:
  explicit ShapeTable(SchemaCompiler& compiler)
      : compiler_(compiler), formulas_(compiler.formulas()), pool_(compiler.values().pool()), parts_(compiler.values()),
        count_(*this, compiler.values(), parts_) {}

  const std::vector<Shape>& Of(FormulaId formula);
  // Normalizes the formulas that documents can reach, up to a limit, so that excessive schemas fail at compile time.
  void Explore(FormulaId root);
  // Returns true if no value satisfies the formula, or the shape.
  bool IsEmpty(FormulaId formula);
  bool IsShapeEmpty(const Shape& shape);
  // Returns false only if the shape certainly has no value. Does not check its children.
  bool IsPossible(const Shape& shape);
  // Counts the different values that satisfy a formula.
  ValueCount& count() { return count_; }
  ShapeParts& parts() { return parts_; }
  // Until the returned value is destroyed, evaluated members and items are ignored.
  ScopedValue<bool> WithoutEvaluation() { return {evaluating_, false}; }

 private:
  std::vector<Shape> Normalize(FormulaId formula);
  std::vector<Shape> NormalizeAnd(const std::vector<FormulaId>& parts);
  std::vector<Shape> NormalizeOr(const std::vector<FormulaId>& parts);
  std::vector<Shape> NormalizeOneOf(const std::vector<FormulaId>& parts);
  // Normalizes a `oneOf`, or if the combinations are too many and a fallback is allowed, the same as `anyOf`, with a warning.
  std::vector<Shape> NormalizeOneOfOrAnyOf(FormulaId id, const std::vector<FormulaId>& parts);
  std::vector<Shape> NormalizeUnevaluated(const Formula& formula);
  std::vector<Shape> NormalizeNot(FormulaId inner);
  std::vector<Shape> NormalizeNegated(const Formula& formula);
  FormulaId WithoutDisjoint(FormulaId negation, const std::vector<FormulaId>& conjunction);
  std::vector<Shape> Union(const std::vector<FormulaId>& formulas);
  std::vector<Shape> Intersect(const std::vector<Shape>& left, const std::vector<Shape>& right);
  bool Apply(uint32_t atom, Shape* shape);
  std::vector<Shape> Tidy(std::vector<Shape> shapes);
  NodeId Names(uint32_t atom);
  bool IsSurelyEmpty(FormulaId formula);
  void Spend();
  // emptiness.cc
  bool IsObjectEmpty(const Shape& shape);
  bool IsArrayEmpty(const Shape& shape);
  bool LacksRequired(const Shape& shape);
  bool LacksKeys(const Shape& shape);
  bool CanMeet(const Shape& shape, const Atom& demand);

  SchemaCompiler& compiler_;
  FormulaTable& formulas_;
  RegexPool& pool_;
  ShapeParts parts_;
  Assumptions assumptions_;  // assumptions of the answer in progress
  ValueCount count_;
  std::unordered_map<FormulaId, std::vector<Shape>> memo_, evaluating_memo_;
  std::unordered_map<FormulaId, bool> empty_;
  std::set<FormulaId> running_, checking_;  // formulas whose shapes, or whose emptiness, are being computed
  std::deque<std::vector<Shape>> provisional_;
  bool evaluating_ = false;  // true inside a schema that depends on what its parts evaluated
  std::unordered_map<uint32_t, NodeId> names_memo_;
  size_t work_ = 0, most_work_ = limits::kShapeSteps;
  int fallbacks_ = 0;  // number of `oneOf`s in progress that may fall back to `anyOf`
  std::set<FormulaId> relaxed_;  // `oneOf`s that have fallen back
};

}  // namespace onpolicy::grammar
