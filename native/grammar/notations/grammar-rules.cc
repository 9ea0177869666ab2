// The statements of a grammar: rules and terminals with their attributes.
#include <algorithm>

#include "grammar/notations/grammar-parser.h"
#include "grammar/pushdown/text-tools.h"

namespace onpolicy::grammar {

Symbol GrammarParser::Parse() {
  if (depth_ > 8) Fail("nested too deeply");
  has_ignore_ = is_lark_ && text_.find("%ignore") != std::string_view::npos;
  if (has_ignore_) rules_->Define(ignore_rule_ = rules_->Add(), RuleExpr::Choice({}));
  for (Blank(); !AtEnd(); Blank()) Statement();
  for (const auto& [name, use] : first_use_)
    if (!rules_->IsDefined(names_[name])) Fail(Called(name) + " is not defined", use);
  for (const TextRule& rule : text_rules_) FinishText(rule);
  if (is_lark_)
    for (const auto& [name, rule] : names_) GuardTails(&rules_->Body(rule));
  const std::string start = is_lark_ ? "start" : "root";
  if (!names_.contains(start)) Fail("there is no rule '" + start + "' to start from", 0);
  const uint32_t root = rules_->Add();
  RuleExpr body = RuleExpr::Reference(names_[start]);
  if (initial_skip_ && has_ignore_) body = RuleExpr::Sequence({Ignored(), body});
  rules_->Define(root, std::move(body));
  return rules_->Compile(root);
}

uint32_t GrammarParser::NewRule(const std::string& name, size_t where) {
  const uint32_t rule = Reference(name, where).rule;
  if (rules_->IsDefined(rule)) Fail(Called(name) + " is defined twice", where);
  return rule;
}

RuleExpr GrammarParser::Reference(const std::string& name, size_t where) {
  const auto [it, is_new] = names_.emplace(name, 0);
  if (is_new) it->second = rules_->Add();
  first_use_.emplace(name, where);
  return RuleExpr::Reference(it->second);
}

void GrammarParser::Statement() {
  if (is_lark_ && Peek() == '%') return Directive();
  const size_t start = at_;
  while (is_lark_ && (Take("?") || Take("!"))) {
  }
  const std::string name = Name();
  if (name.empty()) Fail(is_lark_ ? "expected a rule, a terminal or a directive" : "expected a rule name");
  const bool is_terminal = IsTerminal(name);
  std::function<RuleExpr(RuleExpr)> edit;
  if (Peek() == '[') {
    if (is_terminal) Fail("terminals take no attributes");
    edit = Attributes();
  }
  RefuseExtensions();
  Expect(is_lark_ ? ":" : "::=");
  const uint32_t rule = NewRule(name, start);
  body_ = is_terminal ? Body::kTerminal : edit ? Body::kEdited : Body::kRule;
  RuleExpr body = Alternatives(0);
  body_ = Body::kRule;
  if (!AtEnd() && !AtStatement()) Fail("unexpected character");
  if (edit) body = edit(std::move(body));
  if (edit || is_terminal) text_rules_.push_back({rule, start, is_terminal, body});
  rules_->Define(rule, std::move(body));
}

void GrammarParser::RefuseExtensions() {
  if (!is_lark_) return;
  if (Peek() == '.' && IsDigit(Peek(1))) Unsupported("priorities are not supported", at_);
  if (Peek() == '{' && !IsDigit(Peek(1)) && Peek(1) != ',') Unsupported("templates are not supported", at_);
  if (Peek() == ':' && Peek(1) == ':') Unsupported("parametric rules are not supported", at_);
}

std::function<RuleExpr(RuleExpr)> GrammarParser::Attributes() {
  const size_t open = at_++;
  std::set<std::string> seen;
  RuleExpr suffix = RuleExpr::Text(kEpsilon);
  NodeId most = kAnyText;
  List([&] {
    const size_t where = at_;
    const std::string name = Name();
    if (!seen.insert(name).second) Fail("the attribute '" + name + "' is given twice", where);
    Blank();
    const bool has_value = Take("=");
    Blank();
    if ((name == "lazy" || name == "capture") && !has_value) return;
    if (name == "max_chars" && has_value) {
      most = pool_.Repeat(encoder_.Any(), 0, Number());
    } else if ((name == "capture" || name == "stop_capture") && Peek() == '"') {
      const std::string capture = String();
      if (capture.empty() || !std::all_of(capture.begin(), capture.end(), IsWord)) Fail("invalid capture name", where);
    } else if ((name == "suffix" || name == "stop") && has_value) {
      if (Peek() == '"' || Peek() == '/') {
        suffix = RuleExpr::Text(Peek() == '"' ? Quoted() : SlashExpression());
        if (suffix.text == kEpsilon) Fail("an empty " + name, where);
      } else {
        const std::string terminal = Name();
        if (!IsTerminal(terminal)) Fail("expected a string, an expression or a terminal", where);
        suffix = Reference(terminal, where);
      }
    } else {
      Unsupported("the rule attribute '" + name + "' is not supported", where);
    }
  });
  Expect("]");
  const bool has_suffix = seen.contains("suffix") || seen.contains("stop");
  if (seen.contains("suffix") && seen.contains("stop")) Fail("only one of suffix and stop can be given", open);
  if (seen.contains("stop_capture") && !has_suffix) Fail("stop_capture needs a suffix or stop", open);
  const bool is_shortest = has_suffix || seen.contains("lazy");
  if (!is_shortest && !seen.contains("max_chars")) return {};
  return [this, suffix, most, is_shortest](RuleExpr body) {
    // A text of at most `max_chars`, its suffix, and nothing else.
    body = RuleExpr::Edited(std::move(body), [this, most](NodeId text) { return pool_.And({text, most}); });
    body = RuleExpr::Sequence({std::move(body), suffix});
    if (!is_shortest) return body;
    return RuleExpr::Edited(std::move(body), [this](NodeId text) { return Shortest(pool_, text); });
  };
}

void GrammarParser::FinishText(const TextRule& rule) {
  NodeId node;
  if (!rules_->AsText(rule.text, &node)) {
    if (rule.is_terminal) Fail("a terminal must not refer to itself or to rules", rule.where);
    Unsupported("a rule with attributes must be text, and not refer to itself", rule.where);
  }
  if (rule.is_terminal) return;
  lazy_text_[rule.rule] = node;
  rules_->Body(rule.rule) = Lexeme(RuleExpr::Text(node));
}

void GrammarParser::LazyHeads(const RuleExpr& expr, std::set<uint32_t>* visited, std::vector<NodeId>* heads) {
  if (expr.kind == RuleExpr::kReference) {
    if (auto it = lazy_text_.find(expr.rule); it != lazy_text_.end()) {
      heads->push_back(it->second);
    } else if (visited->insert(expr.rule).second) {
      LazyHeads(rules_->Body(expr.rule), visited, heads);
    }
  } else if (expr.kind == RuleExpr::kChoice) {
    for (const RuleExpr& part : expr.parts) LazyHeads(part, visited, heads);
  } else if (!expr.parts.empty()) {
    LazyHeads(expr.parts[0], visited, heads);
  }
}

void GrammarParser::GuardTails(RuleExpr* expr) {
  for (RuleExpr& part : expr->parts) GuardTails(&part);
  if (expr->kind != RuleExpr::kSequence) return;
  for (size_t i = 0; i + 1 < expr->parts.size(); i++) {
    if (expr->parts[i].kind != RuleExpr::kRepeat || expr->parts[i].max != kUnlimited) continue;
    std::vector<NodeId> heads;
    std::set<uint32_t> visited;
    LazyHeads(expr->parts[i].parts[0], &visited, &heads);
    NodeId tail;
    if (heads.empty() || !rules_->AsText(expr->parts[i + 1], &tail)) continue;
    const NodeId taken = pool_.Concat(pool_.Alternate(std::move(heads)), kAnyText);
    expr->parts[i + 1] = RuleExpr::Text(pool_.And({tail, pool_.Not(taken)}));
  }
}

Symbol GrammarSymbol(FrontEnd& front, std::string_view text, Dialect dialect, TextForm form, int depth) {
  return GrammarParser(front, text, dialect, form, depth).Parse();
}

Dialect DialectOf(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    throw SpecError("INVALID_REQUEST", "", "the grammar is blank");
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    line = line.substr(0, std::min(line.find('#'), line.find("//")));
    if (line.find("::=") != std::string_view::npos) return Dialect::kEbnf;
    at = end + 1;
  }
  return Dialect::kLark;
}

}  // namespace onpolicy::grammar
