// Folding of regular rules, and productions for the rest.
#include "grammar/pushdown/rule-set.h"

#include <algorithm>
#include <numeric>

#include "base/scoped-value.h"
#include "base/spec-error.h"

namespace onpolicy::grammar {

template <typename Visit>
static void ForEachReference(const RuleExpr& expr, const Visit& visit) {
  if (expr.kind == RuleExpr::kReference) visit(expr.rule);
  for (const RuleExpr& part : expr.parts) ForEachReference(part, visit);
}

bool RuleSet::Has(const Property& property, const RuleExpr& expr) const {
  grammar_.regex().budget().Spend(1);
  const auto part_has = [&](const RuleExpr& part) { return Has(property, part); };
  switch (expr.kind) {
    case RuleExpr::kText:
      return property.of_text(expr.text);
    case RuleExpr::kSymbol:
      return property.of_symbol(expr.symbol);
    case RuleExpr::kReference:
      return rules_[expr.rule].*property.of_rule;
    case RuleExpr::kSequence:
    case RuleExpr::kEdited:
      return std::all_of(expr.parts.begin(), expr.parts.end(), part_has);
    case RuleExpr::kChoice:
      return std::any_of(expr.parts.begin(), expr.parts.end(), part_has);
    case RuleExpr::kRepeat:
      return expr.min == 0 || part_has(expr.parts[0]);
  }
  return false;
}

bool RuleSet::IsProductive(const RuleExpr& expr) {
  return Has({[&](NodeId text) { return grammar_.regex().IsLive(text); }, [](Symbol) { return true; }, &Rule::productive}, expr);
}

bool RuleSet::IsNullable(const RuleExpr& expr) const {
  const RegexPool& pool = grammar_.regex();
  return Has({[&](NodeId text) { return pool.IsNullable(text); },
              [&](Symbol symbol) { return KindOf(symbol) == SymbolKind::kTerminal && pool.IsNullable(IndexOf(symbol)); },
              &Rule::nullable},
             expr);
}

bool RuleSet::RuleText(uint32_t rule, NodeId* node) {
  if (rules_[rule].text_state == 0) {
    rules_[rule].text_state = 1;
    const RuleExpr body = rules_[rule].body;
    NodeId text = kNothing;
    const bool is_text = AsText(body, &text) || LoopText(rule, body, &text);
    rules_[rule].text = text;
    rules_[rule].text_state = is_text ? 2 : 3;
  }
  *node = rules_[rule].text;
  return rules_[rule].text_state == 2;
}

// A rule that calls itself only as the last part, or only as the first part, of its alternatives is a loop of text.
bool RuleSet::LoopText(uint32_t rule, const RuleExpr& body, NodeId* node) {
  RegexPool& pool = grammar_.regex();
  const auto is_self = [&](const RuleExpr& expr) { return expr.kind == RuleExpr::kReference && expr.rule == rule; };
  for (const bool at_end : {true, false}) {
    std::vector<NodeId> loops, bases;
    bool fits = true;
    const std::vector<RuleExpr> single{body};
    for (const RuleExpr& option : body.kind == RuleExpr::kChoice ? body.parts : single) {
      NodeId text;
      if (option.kind == RuleExpr::kSequence && !option.parts.empty() &&
          is_self(at_end ? option.parts.back() : option.parts.front())) {
        RuleExpr rest = option;
        rest.parts.erase(at_end ? rest.parts.end() - 1 : rest.parts.begin());
        fits = fits && AsText(rest, &text);
        if (fits) loops.push_back(text);
      } else {
        fits = fits && AsText(option, &text);
        if (fits) bases.push_back(text);
      }
    }
    if (!fits) continue;
    const NodeId loop = pool.Repeat(pool.Alternate(std::move(loops)), 0, kUnlimited);
    const NodeId base = pool.Alternate(std::move(bases));
    *node = at_end ? pool.Concat(loop, base) : pool.Concat(base, loop);
    return true;
  }
  return false;
}

bool RuleSet::AsText(const RuleExpr& expr, NodeId* node) {
  RegexPool& pool = grammar_.regex();
  const ScopedValue<int> deeper(depth_, depth_ + 1);
  if (depth_ > limits::kRuleDepth || pool.size() > limits::kFoldedNodes) return false;
  switch (expr.kind) {
    case RuleExpr::kText:
      *node = expr.text;
      return true;
    case RuleExpr::kSymbol:
      if (KindOf(expr.symbol) != SymbolKind::kTerminal) return false;
      *node = IndexOf(expr.symbol);
      return true;
    case RuleExpr::kReference:
      return RuleText(expr.rule, node);
    case RuleExpr::kSequence:
    case RuleExpr::kChoice: {
      std::vector<NodeId> parts;
      for (const RuleExpr& part : expr.parts)
        if (!AsText(part, &parts.emplace_back())) return false;
      *node = expr.kind == RuleExpr::kChoice ? pool.Alternate(std::move(parts)) : pool.Concat(parts);
      return true;
    }
    case RuleExpr::kRepeat: {
      NodeId inner;
      if (!AsText(expr.parts[0], &inner)) return false;
      *node = pool.Repeat(inner, expr.min, expr.max);
      return true;
    }
    case RuleExpr::kEdited:
      if (!AsText(expr.parts[0], node)) return false;
      *node = expr.edit(*node);
      return true;
  }
  return false;
}

Symbol RuleSet::RuleSymbol(uint32_t rule) {
  if (rules_[rule].has_symbol) return rules_[rule].symbol;
  NodeId text;
  Symbol symbol;
  if (RuleText(rule, &text)) {
    symbol = grammar_.Terminal(text);
  } else {
    symbol = grammar_.Rule([this, rule](Grammar&) {
      const RuleExpr body = rules_[rule].body;
      return Productions(body);
    });
  }
  rules_[rule].symbol = symbol;
  rules_[rule].has_symbol = true;
  return symbol;
}

Symbol RuleSet::SymbolOf(const RuleExpr& expr) {
  NodeId text;
  if (AsText(expr, &text)) return grammar_.Terminal(text);
  switch (expr.kind) {
    case RuleExpr::kSymbol:
      return expr.symbol;
    case RuleExpr::kReference:
      return RuleSymbol(expr.rule);
    case RuleExpr::kRepeat:
      if (!IsProductive(expr.parts[0])) return grammar_.Terminal(expr.min == 0 ? kEpsilon : kNothing);
      return RepeatSymbol(SymbolOf(expr.parts[0]), IsNullable(expr.parts[0]) ? 0 : expr.min, expr.max);
    default:
      return grammar_.Rule([this, expr](Grammar&) { return Productions(expr); });
  }
}

void RuleSet::Append(const RuleExpr& expr, std::vector<Symbol>* symbols) {
  if (expr.kind == RuleExpr::kSequence) {
    for (const RuleExpr& part : expr.parts) Append(part, symbols);
  } else {
    symbols->push_back(SymbolOf(expr));
  }
}

std::vector<SequenceId> RuleSet::Productions(const RuleExpr& expr) {
  std::vector<SequenceId> result;
  if (!IsProductive(expr)) return result;
  if (expr.kind == RuleExpr::kChoice) {
    for (const RuleExpr& part : expr.parts) {
      std::vector<SequenceId> more = Productions(part);
      result.insert(result.end(), more.begin(), more.end());
    }
    return result;
  }
  std::vector<Symbol> symbols;
  Append(expr, &symbols);
  if (grammar_.IsUsable(symbols)) result.push_back(grammar_.Sequence(symbols));
  return result;
}

// inner{min,max} as a rule that counts down, so that only the counts that a text reaches are made.
Symbol RuleSet::RepeatSymbol(Symbol inner, uint32_t min, uint32_t max) {
  auto it = repeats_.find({inner, min, max});
  if (it != repeats_.end()) return it->second;
  const Generator generator = [this, inner, min, max](Grammar& grammar) {
    std::vector<SequenceId> result;
    if (min == 0) result.push_back(grammar.Sequence({}));
    if (max > 0) {
      const Symbol rest = RepeatSymbol(inner, min == 0 ? 0 : min - 1, max == kUnlimited ? kUnlimited : max - 1);
      result.push_back(max == 1 ? grammar.Sequence({inner}) : grammar.Sequence({inner, rest}));
    }
    return result;
  };
  const Symbol symbol = min == 0 ? grammar_.UpTo(generator) : grammar_.Rule(generator);
  repeats_[{inner, min, max}] = symbol;
  return symbol;
}

Symbol RuleSet::Compile(uint32_t start) {
  grammar_.Keep(shared_from_this());
  // Drops alternatives that can never end, which would be dead ends. A result about a rule may change the results about rules that refer to
  // it.
  std::vector<std::vector<uint32_t>> callers(rules_.size());
  for (uint32_t rule = 0; rule < rules_.size(); rule++)
    ForEachReference(rules_[rule].body, [&](uint32_t called) {
      if (callers[called].empty() || callers[called].back() != rule) callers[called].push_back(rule);
    });
  std::vector<uint32_t> open(rules_.size());
  std::iota(open.rbegin(), open.rend(), 0u);
  while (!open.empty()) {
    const uint32_t at = open.back();
    open.pop_back();
    Rule& rule = rules_[at];
    const bool was_productive = rule.productive, was_nullable = rule.nullable;
    rule.productive = was_productive || IsProductive(rule.body);
    rule.nullable = was_nullable || IsNullable(rule.body);
    if (rule.productive != was_productive || rule.nullable != was_nullable)
      open.insert(open.end(), callers[at].begin(), callers[at].end());
  }
  if (!rules_[start].productive) throw SpecError("INVALID_REQUEST", "", "no text can match this grammar");
  return RuleSymbol(start);
}

}  // namespace onpolicy::grammar
