// A grammar in GBNF, EBNF or Lark -> rules. One parser: statements, alternatives, repetitions, strings and tokens are the
// dialects' common ground; EBNF alone has character classes and calls, Lark alone terminals, directives and expressions.
// A text matches when any parse of it does; Lark's terminals do not compete by length.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "notations/grammar-text.h"
#include "pushdown/rule-set.h"
#include "regex/parse.h"

namespace onpolicy::grammar {

class GrammarParser : private GrammarText {
 public:
  GrammarParser(FrontEnd& front, std::string_view text, Dialect dialect, TextForm form, int depth)
      : GrammarText(text, dialect), front_(front), pool_(front.grammar.regex()), depth_(depth), form_(form),
        encoder_(pool_, form), rules_(std::make_shared<RuleSet>(front.grammar)) {}

  Symbol Parse();

 private:
  // A rule that must be plain text: a terminal, or one with attributes.
  struct TextRule {
    uint32_t rule;
    size_t where;
    bool is_terminal;
    RuleExpr text;
  };

  // Statements.
  uint32_t NewRule(const std::string& name, size_t where);
  RuleExpr Reference(const std::string& name, size_t where);
  RuleExpr Ignored() { return RuleExpr::Repeat(RuleExpr::Reference(ignore_rule_), 0, kUnlimited); }
  void Statement();
  // -> how attributes change the text of the rule; none where they do not.
  std::function<RuleExpr(RuleExpr)> Attributes();
  // Refuses what may stand behind a name in Lark, but has no meaning here.
  void RefuseExtensions();
  void FinishText(const TextRule& rule);
  // In `x* tail` where `x` has a lazy head, text that matches the head belongs to the loop: excludes it from the tail.
  void LazyHeads(const RuleExpr& expr, std::set<uint32_t>* visited, std::vector<NodeId>* heads);
  void GuardTails(RuleExpr* expr);

  // Items of a rule.
  // A token of a rule, followed by ignored text.
  RuleExpr Lexeme(RuleExpr expr);
  RuleExpr Alternatives(int depth);
  RuleExpr Items(int depth);
  bool Quantify(RuleExpr* item);
  RuleExpr Item(int depth);
  NodeId Literal(const std::string& text, bool ignore_case, size_t where);
  NodeId Quoted();
  NodeId Class();
  // `pattern` stands in the text at `where`, as it is or (`is_string`) in quotes.
  NodeId Expression(const std::string& pattern, const RegexOptions& options, size_t where, bool is_string);
  void Flag(char flag, RegexOptions* options, size_t where) const;
  // <name>, <[1,3-5]>, <[*]>; and all others: !<name>, <[^1]>.
  RuleExpr Tokens();
  uint32_t Special(std::string_view name, size_t where) const;
  uint32_t TokenNumber(size_t where);

  // Calls, of EBNF.
  RuleExpr Call(const std::string& name, size_t start);
  NodeId RegexCall();
  RuleExpr DispatchCall();
  // `name =`, then perhaps `true` or `false`.
  std::string Option();
  bool Boolean();

  // Directives and what else only Lark has.
  void Directive();
  void Import(const std::string& name, const std::string& alias, size_t where);
  NodeId SlashExpression();
  Symbol Embedded();

  FrontEnd& front_;
  RegexPool& pool_;
  int depth_;
  TextForm form_;
  CharEncoder encoder_;
  std::shared_ptr<RuleSet> rules_;
  std::map<std::string, uint32_t> names_;
  std::map<std::string, size_t> first_use_;
  std::vector<TextRule> text_rules_;
  std::map<uint32_t, NodeId> lazy_text_;
  std::vector<RuleExpr> ignores_;
  uint32_t ignore_rule_ = 0;
  bool has_ignore_ = false, initial_skip_ = false;
  enum class Body { kRule, kTerminal, kEdited, kIgnore } body_ = Body::kRule;  // what is being read
};

}  // namespace onpolicy::grammar
