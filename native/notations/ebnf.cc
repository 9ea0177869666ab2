#include <algorithm>

#include "base/limits.h"
#include "base/utf8.h"
#include "notations/ebnf-parse.h"
#include "pushdown/text-tools.h"
#include "regex/char-class.h"

namespace onpolicy::grammar {

Symbol EbnfParser::Parse(std::string_view root) {
  Blank();
  while (!AtEnd()) {
    Rule();
    Blank();
  }
  for (const auto& [name, use] : first_use_)
    if (!rules_->IsDefined(names_[name])) Fail("rule '" + name + "' is not defined", use);
  const auto start = names_.find(std::string(root));
  if (start == names_.end()) Fail("there is no rule '" + std::string(root) + "' to start from", 0);
  return rules_->Compile(start->second);
}

uint32_t EbnfParser::RuleOf(const std::string& name) {
  auto [it, is_new] = names_.emplace(name, 0);
  if (is_new) it->second = rules_->Add();
  return it->second;
}

void EbnfParser::Rule() {
  const size_t start = at_;
  const std::string name = Name();
  if (name.empty()) Fail("expected a rule name");
  bool lazy = false;
  int64_t max_chars = -1;
  if (Take("[")) {
    do {
      Blank();
      const size_t where = at_;
      const std::string attribute = Name();
      Blank();
      if (attribute == "lazy") {
        lazy = true;
      } else if (attribute == "max_chars" && Take("=")) {
        Blank();
        max_chars = Number();
      } else {
        Unsupported("the rule attribute '" + attribute + "' is not supported", where);
      }
      Blank();
    } while (Take(","));
    Expect("]");
  }
  Expect("::=");
  const uint32_t rule = RuleOf(name);
  if (rules_->IsDefined(rule)) Fail("rule '" + name + "' is defined twice", start);
  RuleExpr body = Alternatives(0);
  if (lazy || max_chars >= 0) {
    NodeId node;
    if (!rules_->AsText(body, &node)) Unsupported("rule attributes need a body without references", start);
    if (max_chars >= 0)
      node = pool_.And({node, pool_.Repeat(plain_.Any(), 0, static_cast<uint32_t>(max_chars))});
    if (lazy) node = Shortest(pool_, node);
    body = RuleExpr::Text(node);
  }
  rules_->Define(rule, std::move(body));
  Blank();
  if (!AtEnd() && !AtRule()) Fail("unexpected character");
}

RuleExpr EbnfParser::Alternatives(int depth) {
  return ReadChoice(depth > limits::kEbnfDepth, [&] { return Items(depth); }, [&] { Blank(); });
}

RuleExpr EbnfParser::Items(int depth) {
  std::vector<RuleExpr> parts;
  while (true) {
    Blank();
    if (AtEnd() || Peek() == '|' || Peek() == ')' || Peek() == ',' || AtRule()) break;
    RuleExpr item = Item(depth);
    while (Quantifier(&item)) {
    }
    parts.push_back(std::move(item));
  }
  return RuleExpr::Sequence(std::move(parts));
}

bool EbnfParser::Quantifier(RuleExpr* item) {
  Blank();
  uint32_t min = 0, max = kUnlimited;
  const size_t start = at_;
  if (Take("*")) {
  } else if (Take("+")) {
    min = 1;
  } else if (Take("?")) {
    max = 1;
  } else if (Take("{")) {
    Blank();
    min = Number();
    max = min;
    Blank();
    if (Take(",")) {
      Blank();
      max = Peek() == '}' ? kUnlimited : Number();
    }
    Expect("}");
    if (max < min) Fail("the counts of a repetition are out of order", start);
  } else {
    return false;
  }
  *item = RuleExpr::Repeat(std::move(*item), min, max);
  return true;
}

RuleExpr EbnfParser::Item(int depth) {
  const size_t start = at_;
  const char c = Peek();
  if (c == '"') return RuleExpr::Text(pool_.Literal(Literal()));
  if (c == '[') return RuleExpr::Text(Class());
  if (c == '<' || (c == '!' && Peek(1) == '<')) return Tokens();
  if (c == '.') {
    at_++;
    return RuleExpr::Text(plain_.Any());
  }
  if (c == '(') {
    at_++;
    if (Peek() == '=') Unsupported("look-ahead is not supported", start);
    RuleExpr inner = Alternatives(depth + 1);
    Blank();
    if (!Take(")")) Fail("unclosed group", start);
    return inner;
  }
  const std::string name = Name();
  if (name.empty()) Fail("unexpected character");
  if (Peek() == '(') return Call(name, start);
  const uint32_t rule = RuleOf(name);
  first_use_.emplace(name, start);
  return RuleExpr::Reference(rule);
}

NodeId EbnfParser::Class() {
  const size_t start = at_++;
  const bool inverted = Take("^");
  CodePoints ranges;
  while (true) {
    if (AtEnd() || Peek() == '\n') Fail("unclosed character class", start);
    if (Take("]")) break;
    const auto one = [&] { return Peek() == '\\' ? Escape() : ReadCodePoint(text_, &at_); };
    const uint32_t low = one();
    uint32_t high = low;
    if (Peek() == '-' && Peek(1) != ']' && Peek(1) != '\0') {
      at_++;
      high = one();
      if (high < low) Fail("character range out of order");
    }
    ranges.push_back({low, high});
  }
  if (ranges.empty() && !inverted) Fail("empty character class", start);
  ranges = Normalized(std::move(ranges));
  return plain_.Class(inverted ? Inverted(ranges) : ranges);
}

RuleExpr EbnfParser::Tokens() {
  const size_t start = at_;
  TokenSet set;
  set.inverted = Take("!");
  at_++;
  if (Take("[")) {
    set.tokens.push_back(Number());
    if (!Take("]>")) Fail("expected ']>'");
  } else {
    const size_t end = text_.find('>', at_);
    if (end == std::string_view::npos) Fail("unclosed token name", start);
    set.tokens.push_back(Special(text_.substr(start + (set.inverted ? 1 : 0), end + 1 - start - (set.inverted ? 1 : 0)), start));
    at_ = end + 1;
  }
  return TokensOf(std::move(set), start);
}

uint32_t EbnfParser::Special(std::string_view name, size_t where) {
  const int64_t token = front_.vocabulary.FindSpecial(name);
  if (token < 0) Fail("the vocabulary has no special token '" + std::string(name) + "'", where);
  return static_cast<uint32_t>(token);
}

RuleExpr EbnfParser::TokensOf(TokenSet set, size_t where) {
  for (uint32_t token : set.tokens)
    if (token >= front_.vocabulary.size()) Fail("the vocabulary has no token " + std::to_string(token), where);
  std::sort(set.tokens.begin(), set.tokens.end());
  return RuleExpr::Of(front_.grammar.Tokens(std::move(set)));
}

Symbol EbnfSymbol(FrontEnd& front, std::string_view text, std::string_view root) {
  return EbnfParser(front, text).Parse(root);
}

Symbol GrammarSymbol(FrontEnd& front, std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    throw SpecError("INVALID_REQUEST", "", "the grammar is blank");
  // EBNF if any line holds "::=" outside a comment.
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    line = line.substr(0, std::min(line.find('#'), line.find("//")));
    if (line.find("::=") != std::string_view::npos) return EbnfSymbol(front, text, "root");
    at = end + 1;
  }
  return LarkSymbol(front, text, 0);
}

}  // namespace onpolicy::grammar
