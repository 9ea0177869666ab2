// Formulas -> shapes: a disjunction of restrictions of one JSON type each, empty ones left out. Children stay formulas,
// so recursion unfolds only as deep as a document does.
#pragma once
#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "json-schema/compile.h"

namespace onpolicy::grammar {

class ShapeTable {
 public:
  explicit ShapeTable(SchemaCompiler& compiler) : compiler_(compiler), formulas_(compiler.formulas()) {}

  const std::vector<Shape>& Of(FormulaId formula);
  // True when no value satisfies the formula.
  bool IsEmpty(FormulaId formula);
  // How many different values satisfy the formula, or `cap` (at most 1000).
  uint64_t CountValues(FormulaId formula, uint64_t cap);
  // The same, where what cannot be told counts as none instead of as many.
  uint64_t CountSureValues(FormulaId formula, uint64_t cap);
  // Emptiness of one shape of a formula.
  bool IsShapeEmpty(const Shape& shape);
  // Normalises what documents of the formula can reach, as far as a budget goes, so that what is too much shows now.
  void Explore(FormulaId root);
  // What the value of a key, or the item at an index, must satisfy.
  FormulaId MemberFormula(const Shape& shape, const std::string& key);
  FormulaId ItemFormula(const Shape& shape, size_t index);
  size_t PrefixLength(const Shape& shape) const;
  // Whether the key passes all `names`.
  bool AllowsName(const Shape& shape, const std::string& key);
  NodeId KeyNode(const std::string& key) { return compiler_.values().strict_text().Text(key); }
  RegexPool& pool() { return compiler_.values().strict_text().pool(); }
  SchemaCompiler& compiler() { return compiler_; }
  const FormulaTable& formulas_view() const { return formulas_; }
  FormulaTable& formulas() { return formulas_; }

 private:
  static std::vector<Shape> AllShapes();
  std::vector<Shape> Normalize(FormulaId formula);
  std::vector<Shape> NormalizeNot(FormulaId inner);
  FormulaId WithoutDisjoint(FormulaId negation, const std::vector<FormulaId>& conjunction);
  std::vector<Shape> NormalizeUnevaluated(const Formula& formula);
  std::vector<Shape> Intersect(const std::vector<Shape>& left, const std::vector<Shape>& right);
  uint64_t CountShape(const Shape& shape);
  uint64_t CountScalars(const Shape& shape);
  NodeId PlainSpellings();
  uint64_t CountArrays(const Shape& shape);
  uint64_t CountObjects(const Shape& shape);
  bool Apply(uint32_t atom, Shape* shape);
  bool IsPossible(const Shape& shape);  // without looking at children
  bool CanMeet(const Shape& shape, const Atom& demand);
  // What an answer leaned on: results may differ once these are known.
  struct Leans {
    bool on_running = false;   // a formula that is still being normalised
    bool on_checking = false;  // one that is taken for empty while its emptiness is looked at
  };
  // Whether `ask` says so, and what that leaned on: which the answers around it do not by this.
  template <typename Ask>
  std::pair<bool, Leans> AskApart(Ask ask) {
    const Leans outer = std::exchange(leans_, Leans());
    const bool answer = ask();
    return {answer, std::exchange(leans_, outer)};
  }
  void LeanOn(const Leans& more) {
    leans_.on_running = leans_.on_running || more.on_running;
    leans_.on_checking = leans_.on_checking || more.on_checking;
  }
  // Emptiness as far as it is sure while other formulas are still being worked on.
  template <typename Ask>
  bool IsSurely(Ask ask) {
    const auto [answer, leans] = AskApart(ask);
    LeanOn({.on_running = leans.on_running});
    return answer && !leans.on_running && !leans.on_checking;
  }
  void Spend();
  bool LacksRequired(const Shape& shape);
  std::vector<FormulaId> Children(const Shape& shape);
  std::vector<Shape> Tidy(std::vector<Shape> shapes);
  NodeId Names(uint32_t atom);
  std::string EncodedKey(const std::string& key) const;

  SchemaCompiler& compiler_;
  FormulaTable& formulas_;
  std::unordered_map<FormulaId, std::vector<Shape>> memo_, annotated_memo_;
  std::set<FormulaId> running_;
  Leans leans_;  // of the answer that is being found
  std::deque<std::vector<Shape>> provisional_;
  bool annotating_ = false;  // inside a schema that looks at what its parts evaluated
  std::unordered_map<uint32_t, NodeId> names_memo_;
  std::unordered_map<FormulaId, bool> empty_;
  std::unordered_map<FormulaId, uint64_t> counts_, sure_counts_;
  bool counts_surely_ = false;  // what cannot be told counts as none
  int counting_ = 0;
  std::set<FormulaId> checking_;
  size_t work_ = 0;
};

}  // namespace onpolicy::grammar
