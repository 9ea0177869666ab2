// Calls in a grammar: Regex, Substring, TagDispatch, Token and ExcludeToken.
#include "notations/ebnf-parse.h"
#include "pushdown/text-tools.h"
#include "regex/char-class.h"

namespace onpolicy::grammar {

RuleExpr EbnfParser::Call(const std::string& name, size_t start) {
  if (name == "Regex") return RegexCall();
  if (name == "Substring") {
    at_++;
    std::vector<std::string> chunks;
    do {
      Blank();
      if (Peek() != '"') Fail("expected a string");
      chunks.push_back(Literal());
      Blank();
    } while (Take(","));
    Expect(")");
    return RuleExpr::Text(ChunkRun(pool_, chunks));
  }
  if (name == "TagDispatch") return DispatchCall();
  if (name == "Token" || name == "ExcludeToken") {
    at_++;
    TokenSet set;
    set.inverted = name == "ExcludeToken";
    do {
      Blank();
      const size_t where = at_;
      set.tokens.push_back(Peek() == '"' ? Special(Literal(), where) : Number());
      Blank();
    } while (Take(","));
    Expect(")");
    return TokensOf(std::move(set), start);
  }
  Unsupported("'" + name + "(...)' is not supported", start);
}

RuleExpr EbnfParser::RegexCall() {
  at_++;
  Blank();
  const size_t start = at_;
  if (Peek() != '"') Fail("expected a string");
  const std::string pattern = Literal();
  RegexOptions options;
  bool json_string = false;
  options.allow_lookahead = true;
  Blank();
  while (Take(",")) {
    Blank();
    const size_t where = at_;
    const std::string option = Name();
    Expect("=");
    Blank();
    if (option == "flags" && Peek() == '"') {
      for (char flag : Literal()) {
        if (flag == 'i') {
          options.ignore_case = true;
        } else if (flag == 's') {
          options.dot_all = true;
        } else if (flag != 'u') {
          Unsupported(std::string("the flag '") + flag + "' is not supported", where);
        }
      }
    } else if (option == "json_string" && (Take("true") || Take("false"))) {
      json_string = text_[at_ - 2] == 'u';
    } else {
      Fail("unknown option '" + option + "'", where);
    }
    Blank();
  }
  Expect(")");
  ParseError error;
  NodeId node = ParseRegex(pattern, options, plain_, &error);
  if (!error.ok()) {
    const std::string what = "in the expression, at offset " + std::to_string(error.position) + ": " + error.message;
    if (error.unsupported) Unsupported(what, start);
    Fail(what, start);
  }
  if (json_string) {
    // Only characters that a JSON string holds unescaped.
    const CodePoints raw = Inverted({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}});
    node = pool_.And({node, pool_.Repeat(plain_.Class(raw), 0, kUnlimited)});
  }
  return RuleExpr::Text(node);
}

RuleExpr EbnfParser::DispatchCall() {
  at_++;
  std::vector<Trigger> triggers;
  std::vector<std::string> excludes;
  bool loop = true;
  Blank();
  while (Peek() != ')') {
    const size_t where = at_;
    if (Take("(")) {
      Blank();
      if (Peek() != '"') Fail("expected a string");
      Trigger trigger{Literal(), {}};
      if (trigger.text.empty()) Fail("an empty tag", where);
      Expect(",");
      Blank();
      const size_t use = at_;
      const std::string rule = Name();
      if (rule.empty()) Fail("expected a rule name");
      first_use_.emplace(rule, use);
      trigger.body = RuleExpr::Reference(RuleOf(rule));
      Expect(")");
      triggers.push_back(std::move(trigger));
    } else {
      const std::string option = Name();
      Expect("=");
      Blank();
      if (option == "loop_after_dispatch" && (Take("true") || Take("false"))) {
        loop = text_[at_ - 2] == 'u';
      } else if (option == "excludes" && Take("(")) {
        Blank();
        while (Peek() != ')') {
          if (Peek() != '"') Fail("expected a string");
          excludes.push_back(Literal());
          if (excludes.back().empty()) Fail("an empty string to exclude", where);
          Blank();
          if (!Take(",")) break;
          Blank();
        }
        Expect(")");
      } else {
        Fail("unknown option '" + option + "'", where);
      }
    }
    Blank();
    if (!Take(",")) break;
    Blank();
  }
  Expect(")");
  return Dispatch(front_.grammar, *rules_, triggers, excludes, loop, false);
}

}  // namespace onpolicy::grammar
