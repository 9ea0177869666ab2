// Formulas -> shapes: a disjunction of restrictions of one JSON type each, empty ones left out. Children stay formulas,
// so recursion unfolds only as deep as a document does.
#pragma once
#include <deque>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/scoped-value.h"
#include "base/spec-error.h"
#include "json-schema/compile.h"
#include "json-schema/shape-parts.h"

namespace onpolicy::grammar {

using limits::kCountedValues;

class ShapeTable;

// Which unfinished work an answer assumed the outcome of: such an answer may change once that is known.
struct Assumed {
  bool running = false;   // that a formula that is being normalized has no shapes
  bool checking = false;  // that one whose emptiness is being checked is empty
};

class Assumptions {
 public:
  void Add(const Assumed& more) {
    now_.running = now_.running || more.running;
    now_.checking = now_.checking || more.checking;
  }
  // What `ask` answers, and what that assumed; the answers around it do not assume it by this.
  template <typename Ask>
  std::pair<bool, Assumed> AskApart(Ask ask) {
    const Assumed outer = std::exchange(now_, {});
    const bool answer = ask();
    return {answer, std::exchange(now_, outer)};
  }
  // Whether `work` assumes something of running work; what it assumes of checks is added to what is assumed around it.
  template <typename Work>
  bool AssumesRunning(Work work) {
    const bool outer = std::exchange(now_.running, false);
    work();
    return std::exchange(now_.running, outer);
  }
  // Whether `ask` says yes and assumes nothing.
  template <typename Ask>
  bool IsSurely(Ask ask) {
    const auto [answer, assumed] = AskApart(ask);
    Add({.running = assumed.running});
    return answer && !assumed.running && !assumed.checking;
  }

 private:
  Assumed now_;
};

// Takes a formula out of those in progress at the end of the scope.
struct InProgress {
  std::set<FormulaId>& all;
  FormulaId formula;
  ~InProgress() { all.erase(formula); }
};

// A formula -> how many different values satisfy it.
class ValueCount {
 public:
  ValueCount(ShapeTable& shapes, ValueFormulas& values, ShapeParts& parts)
      : shapes_(shapes), values_(values), pool_(values.pool()), parts_(parts) {}

  // At most kCountedValues; what cannot be told counts as many.
  uint64_t Count(FormulaId formula);
  // The same, where what cannot be told counts as none.
  uint64_t CountSure(FormulaId formula);

 private:
  uint64_t OfShape(const Shape& shape);
  uint64_t Scalars(const Shape& shape);
  uint64_t Arrays(const Shape& shape);
  uint64_t Objects(const Shape& shape);
  // Whether an object may have a key beside those that are known, or that cannot be told.
  bool MayHaveFurther(const Shape& shape);
  NodeId PlainSpellings();

  ShapeTable& shapes_;
  ValueFormulas& values_;
  RegexPool& pool_;
  ShapeParts& parts_;
  std::unordered_map<FormulaId, uint64_t> counts_, sure_counts_;
  bool is_sure_ = false;  // what cannot be told counts as none
  int depth_ = 0;
};

// Thrown where the combinations of a schema are too many. They may be fewer with SchemaOptions::reads_any_of.
struct UnenforceableSchema : SpecError {
  explicit UnenforceableSchema(std::string where)
      : SpecError("UNSUPPORTED", std::move(where), "the schema's combinations are too many to enforce") {}
};

class ShapeTable {
 public:
  explicit ShapeTable(SchemaCompiler& compiler)
      : compiler_(compiler), formulas_(compiler.formulas()), pool_(compiler.values().pool()), parts_(compiler.values()),
        count_(*this, compiler.values(), parts_) {}

  const std::vector<Shape>& Of(FormulaId formula);
  // Normalizes what documents of the formula can reach, up to a limit, so that what is too much shows now.
  void Explore(FormulaId root);
  // True when no value satisfies the formula, or the shape.
  bool IsEmpty(FormulaId formula);
  bool IsShapeEmpty(const Shape& shape);
  // The same without a look at children: false is sure.
  bool IsPossible(const Shape& shape);
  // How many different values satisfy a formula.
  ValueCount& count() { return count_; }
  ShapeParts& parts() { return parts_; }
  // While this lasts, what counts as evaluated plays no part.
  ScopedValue<bool> WithoutEvaluation() { return {evaluating_, false}; }

 private:
  std::vector<Shape> Normalize(FormulaId formula);
  std::vector<Shape> NormalizeAnd(const std::vector<FormulaId>& parts);
  std::vector<Shape> NormalizeOr(const std::vector<FormulaId>& parts);
  std::vector<Shape> NormalizeOneOf(const std::vector<FormulaId>& parts);
  // The same; as `anyOf`, with a warning, where the combinations are too many and a fallback is allowed.
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
  Assumptions assumptions_;  // of the answer that is being found
  ValueCount count_;
  std::unordered_map<FormulaId, std::vector<Shape>> memo_, evaluating_memo_;
  std::unordered_map<FormulaId, bool> empty_;
  std::set<FormulaId> running_, checking_;  // whose shapes, or whose emptiness, are being found
  std::deque<std::vector<Shape>> provisional_;
  bool evaluating_ = false;  // inside a schema that looks at what its parts evaluated
  std::unordered_map<uint32_t, NodeId> names_memo_;
  size_t work_ = 0, most_work_ = limits::kShapeSteps;
  int fallbacks_ = 0;  // `oneOf`s in progress that are read as `anyOf` where their combinations are too many
  std::set<FormulaId> relaxed_;  // those that are
};

}  // namespace onpolicy::grammar
