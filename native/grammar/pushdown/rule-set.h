// Rules of a grammar notation, with regular parts as automata -> symbols. A rule that is not recursive and contains only text becomes one
// terminal; the others become pushdown rules.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "grammar/pushdown/grammar.h"

namespace onpolicy::grammar {

struct RuleExpr {
  enum Kind { kText, kSymbol, kReference, kSequence, kChoice, kRepeat, kEdited } kind = kSequence;
  NodeId text = kEpsilon;  // kText
  Symbol symbol = 0;       // kSymbol: made by another front end
  uint32_t rule = 0;       // kReference
  std::vector<RuleExpr> parts;
  uint32_t min = 0, max = 0;  // kRepeat of parts[0]
  std::function<NodeId(NodeId)> edit = {};  // kEdited: the function that changes the text of parts[0]

  static RuleExpr Text(NodeId node) { return {kText, node, 0, 0, {}, 0, 0}; }
  static RuleExpr Of(Symbol symbol) { return {kSymbol, kEpsilon, symbol, 0, {}, 0, 0}; }
  static RuleExpr Reference(uint32_t rule) { return {kReference, kEpsilon, 0, rule, {}, 0, 0}; }
  static RuleExpr Sequence(std::vector<RuleExpr> parts) { return Join(kSequence, std::move(parts)); }
  static RuleExpr Choice(std::vector<RuleExpr> parts) { return Join(kChoice, std::move(parts)); }
  static RuleExpr Repeat(RuleExpr part, uint32_t min, uint32_t max) {
    RuleExpr expr{kRepeat, kEpsilon, 0, 0, {}, min, max};
    expr.parts.push_back(std::move(part));
    return expr;
  }
  static RuleExpr Edited(RuleExpr part, std::function<NodeId(NodeId)> edit) {
    RuleExpr expr{kEdited, kEpsilon, 0, 0, {}, 0, 0, std::move(edit)};
    expr.parts.push_back(std::move(part));
    return expr;
  }

 private:
  // A list of one part is that part.
  static RuleExpr Join(Kind kind, std::vector<RuleExpr> parts) {
    if (parts.size() == 1) return std::move(parts[0]);
    return {kind, kEpsilon, 0, 0, std::move(parts), 0, 0};
  }
};

class RuleSet : public std::enable_shared_from_this<RuleSet> {
 public:
  explicit RuleSet(Grammar& grammar) : grammar_(grammar) {}
  uint32_t Add() {
    rules_.emplace_back();
    return static_cast<uint32_t>(rules_.size() - 1);
  }
  void Define(uint32_t rule, RuleExpr body) {
    rules_[rule].body = std::move(body);
    rules_[rule].defined = true;
  }
  bool IsDefined(uint32_t rule) const { return rules_[rule].defined; }
  RuleExpr& Body(uint32_t rule) { return rules_[rule].body; }
  // Sets `node` to the language of an expression as one automaton. Returns false if it is recursive, too large, or contains other symbols.
  bool AsText(const RuleExpr& expr, NodeId* node);
  // Returns the rule as a symbol; throws SpecError if no text matches it. The grammar owns this set from then on.
  Symbol Compile(uint32_t start);

 private:
  struct Rule {
    RuleExpr body;
    bool defined = false;
    bool productive = false;  // some text matches
    bool nullable = false;    // the empty text does
    int text_state = 0;  // 0 unknown, 1 being computed, 2 text, 3 no text
    NodeId text = kNothing;
    bool has_symbol = false;
    Symbol symbol = 0;
  };
  // A property that a sequence has if all of its parts have it, and a choice if one has it.
  struct Property {
    std::function<bool(NodeId)> of_text;
    std::function<bool(Symbol)> of_symbol;
    bool Rule::*of_rule;
  };
  bool Has(const Property& property, const RuleExpr& expr) const;
  // Returns true if some text matches (IsProductive), or if the empty text does (IsNullable).
  bool IsProductive(const RuleExpr& expr);
  bool IsNullable(const RuleExpr& expr) const;
  bool LoopText(uint32_t rule, const RuleExpr& body, NodeId* node);
  bool RuleText(uint32_t rule, NodeId* node);
  Symbol RuleSymbol(uint32_t rule);
  Symbol SymbolOf(const RuleExpr& expr);
  void Append(const RuleExpr& expr, std::vector<Symbol>* symbols);
  std::vector<SequenceId> Productions(const RuleExpr& expr);
  Symbol RepeatSymbol(Symbol inner, uint32_t min, uint32_t max);

  Grammar& grammar_;
  std::vector<Rule> rules_;
  std::map<std::tuple<Symbol, uint32_t, uint32_t>, Symbol> repeats_;
  int depth_ = 0;
};

}  // namespace onpolicy::grammar
