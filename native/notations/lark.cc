// The statements of a Lark grammar: rules, terminals and directives.
#include <algorithm>

#include "notations/lark-parse.h"
#include "pushdown/text-tools.h"

namespace onpolicy::grammar {

namespace {

// Terminals of the module `common`, as regular expressions.
const std::map<std::string, std::string, std::less<>>& CommonTerminals() {
  static const std::map<std::string, std::string, std::less<>> terminals = [] {
    const std::string exponent = "[eE][+-]?[0-9]+";
    const std::string decimal = "(?:[0-9]+\\.[0-9]*|\\.[0-9]+)";
    const std::string real = "(?:[0-9]+" + exponent + "|" + decimal + "(?:" + exponent + ")?)";
    return std::map<std::string, std::string, std::less<>>{
        {"DIGIT", "[0-9]"}, {"HEXDIGIT", "[0-9a-fA-F]"}, {"INT", "[0-9]+"}, {"SIGNED_INT", "[+-]?[0-9]+"},
        {"DECIMAL", decimal}, {"_EXP", exponent}, {"FLOAT", real}, {"SIGNED_FLOAT", "[+-]?" + real},
        {"NUMBER", "(?:" + real + "|[0-9]+)"}, {"SIGNED_NUMBER", "[+-]?(?:" + real + "|[0-9]+)"},
        {"ESCAPED_STRING", "\"(?:[^\"\\\\\\n]|\\\\[^\\n])*\""}, {"LCASE_LETTER", "[a-z]"}, {"UCASE_LETTER", "[A-Z]"},
        {"LETTER", "[a-zA-Z]"}, {"WORD", "[a-zA-Z]+"}, {"CNAME", "[_a-zA-Z][_a-zA-Z0-9]*"}, {"WS_INLINE", "[ \\t]+"},
        {"WS", "[ \\t\\f\\r\\n]+"}, {"CR", "\\r"}, {"LF", "\\n"}, {"NEWLINE", "(?:\\r?\\n)+"}, {"SH_COMMENT", "#[^\\n]*"},
        {"CPP_COMMENT", "//[^\\n]*"}, {"C_COMMENT", "/\\*(?:[^*]|\\*+[^*/])*\\*+/"}, {"SQL_COMMENT", "--[^\\n]*"}};
  }();
  return terminals;
}

}  // namespace

Symbol LarkParser::Parse() {
  if (depth_ > 8) Fail("nested too deeply");
  FindIgnores();
  at_ = 0;
  Blank();
  while (!AtEnd()) {
    Statement();
    Blank();
  }
  for (const auto& [name, use] : first_use_)
    if (!rules_->IsDefined(names_[name])) Fail("'" + name + "' is not defined", use);
  for (const auto& [rule, where] : terminal_rules_) {
    NodeId node;
    if (!rules_->AsText(RuleExpr::Reference(rule), &node)) Fail("a terminal must not refer to itself or to rules", where);
  }
  for (const LazyRule& lazy : lazy_rules_) FinishLazy(lazy);
  for (const auto& [rule, where] : plain_rules_) GuardTails(&rules_->Body(rule));
  const auto start = names_.find("start");
  if (start == names_.end()) Fail("there is no rule 'start'", 0);
  const uint32_t root = rules_->Add();
  RuleExpr body = RuleExpr::Reference(start->second);
  if (initial_skip_ && has_ignore_) body = RuleExpr::Sequence({Ignored(), body});
  rules_->Define(root, std::move(body));
  return rules_->Compile(root);
}

uint32_t LarkParser::RuleOf(const std::string& name) {
  auto [it, is_new] = names_.emplace(name, 0);
  if (is_new) it->second = rules_->Add();
  return it->second;
}

void LarkParser::FindIgnores() {
  for (size_t line = 0; line < text_.size();) {
    const size_t first = text_.find_first_not_of(" \t", line);
    if (first != std::string_view::npos && text_.substr(first, 7) == "%ignore") has_ignore_ = true;
    const size_t end = text_.find('\n', line);
    line = end == std::string_view::npos ? text_.size() : end + 1;
  }
  if (has_ignore_) ignore_rule_ = rules_->Add();
}

void LarkParser::Statement() {
  if (Peek() == '%') return Directive();
  const size_t start = at_;
  while (Peek() == '?' || Peek() == '!') at_++;
  const std::string name = Name();
  if (name.empty()) Fail("expected a rule, a terminal or a directive");
  const bool is_terminal = IsTerminalName(name);
  LazyRule lazy{0, start, false, false, {}};
  if (Peek() == '[') Attributes(is_terminal, &lazy);
  if (Peek() == '.') Unsupported("priorities are not supported", at_);
  if (Peek() == '{') Unsupported("templates are not supported", at_);
  InlineBlank();
  if (Peek() == ':' && Peek(1) == ':') Unsupported("parametric rules are not supported", at_);
  if (!Take(":")) Fail("expected ':'");
  const uint32_t rule = RuleOf(name);
  if (rules_->IsDefined(rule)) Fail("'" + name + "' is defined twice", start);
  in_terminal_ = is_terminal || lazy.shortest || lazy.has_suffix;
  in_named_terminal_ = is_terminal;
  lazy_body_ = lazy.shortest || lazy.has_suffix;
  RuleExpr body = Alternatives(0);
  in_terminal_ = in_named_terminal_ = lazy_body_ = false;
  Blank();
  if (!AtEnd() && !AtStatement()) Fail("unexpected character");
  rules_->Define(rule, std::move(body));
  lazy.rule = rule;
  if (lazy.shortest || lazy.has_suffix) {
    lazy_rules_.push_back(std::move(lazy));
  } else if (is_terminal) {
    terminal_rules_.push_back({rule, start});
  } else {
    plain_rules_.push_back({rule, start});
  }
}

void LarkParser::Attributes(bool is_terminal, LazyRule* lazy) {
  const size_t open = at_++;
  if (is_terminal) Fail("terminals take no attributes", open);
  std::set<std::string> seen;
  bool captures_stop = false;
  do {
    Blank();
    const size_t where = at_;
    const std::string name = Name();
    if (!seen.insert(name).second) Fail("the attribute '" + name + "' is given twice", where);
    Blank();
    const bool has_value = Take("=");
    Blank();
    if (name == "lazy" && !has_value) {
      lazy->shortest = true;
    } else if (name == "capture" && !has_value) {
    } else if ((name == "capture" || name == "stop_capture") && Peek() == '"') {
      bool ignore_case = false;
      if (!IsPlainName(String(&ignore_case))) Fail("invalid capture name", where);
      captures_stop = captures_stop || name == "stop_capture";
    } else if ((name == "suffix" || name == "stop") && has_value) {
      if (lazy->has_suffix) Fail("only one of suffix and stop can be given", where);
      lazy->has_suffix = true;
      if (Peek() == '"') {
        bool ignore_case = false;
        const std::string text = String(&ignore_case);
        if (text.empty()) Fail("an empty " + name, where);
        lazy->suffix = RuleExpr::Text(Literal(text, ignore_case, where));
      } else if (Peek() == '/') {
        lazy->suffix = RuleExpr::Text(Regex());
      } else {
        const std::string terminal = Name();
        if (!IsTerminalName(terminal)) Fail("expected a string, an expression or a terminal", where);
        first_use_.emplace(terminal, where);
        lazy->suffix = RuleExpr::Reference(RuleOf(terminal));
      }
    } else {
      Unsupported("the rule attribute '" + name + "' is not supported", where);
    }
    Blank();
  } while (Take(","));
  if (!Take("]")) Fail("expected ']'");
  if (captures_stop && !lazy->has_suffix) Fail("stop_capture needs a suffix or stop", open);
}

void LarkParser::FinishLazy(const LazyRule& lazy) {
  NodeId node, suffix = kEpsilon;
  if (!rules_->AsText(rules_->Body(lazy.rule), &node) || (lazy.has_suffix && !rules_->AsText(lazy.suffix, &suffix)))
    Unsupported("a lazy or suffixed rule must hold only terminals", lazy.where);
  const NodeId text = Shortest(pool_, pool_.Concat(node, suffix));
  lazy_text_[lazy.rule] = text;
  RuleExpr body = RuleExpr::Text(text);
  if (has_ignore_) body = RuleExpr::Sequence({std::move(body), Ignored()});
  rules_->Body(lazy.rule) = std::move(body);
}

void LarkParser::LazyHeads(const RuleExpr& expr, std::set<uint32_t>* visited, std::vector<NodeId>* heads) {
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

void LarkParser::GuardTails(RuleExpr* expr) {
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

void LarkParser::Directive() {
  const size_t start = at_;
  if (Take("%import")) {
    InlineBlank();
    std::string module = Name();
    if (module != "common") Unsupported("only the module 'common' can be imported", start);
    InlineBlank();
    if (Take("(")) {
      do {
        Blank();
        const std::string name = Name();
        Import(name, name, start);
        Blank();
      } while (Take(","));
      if (!Take(")")) Fail("expected ')'");
      return;
    }
    if (!Take(".")) Fail("expected '.'");
    const std::string name = Name();
    InlineBlank();
    std::string alias = name;
    if (Take("->")) {
      InlineBlank();
      alias = Name();
    }
    return Import(name, alias, start);
  }
  if (Take("%ignore")) {
    InlineBlank();
    in_terminal_ = true;
    RuleExpr body = Alternatives(0);
    in_terminal_ = false;
    ignores_.push_back(std::move(body));
    rules_->Define(ignore_rule_, RuleExpr::Choice(ignores_));
    return;
  }
  if (Take("%grammar_options")) {
    const JsonValue options = Json();
    if (!options.IsObject()) Fail("expected an object", start);
    for (const auto& [key, value] : options.members) {
      if (!value.IsBool()) Fail("the option '" + key + "' must be a boolean", start);
      if (key == "allow_initial_skip") {
        initial_skip_ = value.type == JsonValue::kTrue;
      } else if ((key != "no_forcing" && key != "allow_invalid_utf8") || value.type == JsonValue::kTrue) {
        Unsupported("the option '" + key + "' is not supported", start);
      }
    }
    return;
  }
  Unsupported("this directive is not supported", start);
}

void LarkParser::Import(const std::string& name, const std::string& alias, size_t where) {
  const auto it = CommonTerminals().find(name);
  if (it == CommonTerminals().end()) Fail("'common' has no terminal '" + name + "'", where);
  if (!IsTerminalName(alias)) Fail("expected a terminal name", where);
  const uint32_t rule = RuleOf(alias);
  if (rules_->IsDefined(rule)) Fail("'" + alias + "' is defined twice", where);
  ParseError error;
  rules_->Define(rule, RuleExpr::Text(ParseRegex(it->second, {}, encoder_, &error)));
}

Symbol LarkSymbol(FrontEnd& front, std::string_view text, int depth, TextForm form) {
  return LarkParser(front, text, depth, form).Parse();
}

}  // namespace onpolicy::grammar
