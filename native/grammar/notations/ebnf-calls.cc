// Calls in EBNF: Regex, Substring, TagDispatch, Token and ExcludeToken.
#include "grammar/notations/grammar-parser.h"
#include "grammar/pushdown/text-tools.h"

namespace onpolicy::grammar {

RuleExpr GrammarParser::Call(const std::string& name, size_t start) {
  RuleExpr made;
  if (name == "Regex") {
    made = RuleExpr::Text(RegexCall());
  } else if (name == "Substring") {
    std::vector<std::string> chunks;
    List([&] { chunks.push_back(String()); });
    made = RuleExpr::Text(ChunkRun(pool_, chunks));
  } else if (name == "TagDispatch") {
    made = DispatchCall();
  } else if (name == "Token" || name == "ExcludeToken") {
    std::vector<uint32_t> tokens;
    List([&] { tokens.push_back(Peek() == '"' ? Special(String(), start) : TokenNumber(at_)); });
    made = RuleExpr::Of(front_.OneOf(std::move(tokens), name == "ExcludeToken"));
  } else {
    Unsupported("'" + name + "(...)' is not supported", start);
  }
  Expect(")");
  return made;
}

std::string GrammarParser::Option() {
  std::string name = Name();
  Expect("=");
  Blank();
  return name;
}

bool GrammarParser::Boolean() {
  const bool is_true = Take("true");
  if (!is_true && !Take("false")) Fail("expected true or false");
  return is_true;
}

NodeId GrammarParser::RegexCall() {
  Blank();
  const size_t start = at_;
  const std::string pattern = String();
  RegexOptions options;
  bool json_string = false;
  options.allow_lookahead = true;
  for (Blank(); Take(","); Blank()) {
    Blank();
    const size_t where = at_;
    const std::string option = Option();
    if (option == "flags") {
      for (char flag : String()) Flag(flag, &options, where);
    } else if (option == "json_string") {
      json_string = Boolean();
    } else {
      Fail("unknown option '" + option + "'", where);
    }
  }
  const NodeId node = Expression(pattern, options, start, true);
  if (!json_string) return node;
  // Only characters that need no escape inside a JSON string.
  const CodePoints raw = Inverted({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}});
  return pool_.And({node, pool_.Repeat(encoder_.Class(raw), 0, kUnlimited)});
}

RuleExpr GrammarParser::DispatchCall() {
  std::vector<Trigger> triggers;
  std::vector<std::string> excludes;
  bool loop = true;
  List([&] {
    const size_t where = at_;
    if (Peek() == ')') return;  // nothing, or a comma before it
    if (Take("(")) {
      Trigger trigger{String(), {}};
      if (trigger.text.empty()) Fail("an empty tag", where);
      Expect(",");
      Blank();
      const size_t use = at_;
      const std::string rule = Name();
      if (rule.empty()) Fail("expected a rule name");
      trigger.body = Reference(rule, use);
      triggers.push_back(std::move(trigger));
      return Expect(")");
    }
    const std::string option = Option();
    if (option == "loop_after_dispatch") {
      loop = Boolean();
    } else if (option == "excludes") {
      Expect("(");
      List([&] {
        if (Peek() == ')') return;
        excludes.push_back(String());
        if (excludes.back().empty()) Fail("an empty string to exclude", where);
      });
      Expect(")");
    } else {
      Fail("unknown option '" + option + "'", where);
    }
  });
  return Dispatch(front_.grammar, *rules_, triggers, excludes, loop);
}

}  // namespace onpolicy::grammar
