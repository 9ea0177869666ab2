// A grammar in GBNF, EBNF or Lark -> rules. One parser for all: statements, alternatives, repetitions, strings and tokens are common to the
// dialects; character classes and calls exist only in EBNF; terminals, directives and expressions only in Lark. A text matches if any parse
// of it does; Lark's terminals do not compete by length.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "grammar/notations/grammar-text.h"
#include "grammar/pushdown/rule-set.h"
#include "grammar/regex/parse.h"

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
  // Reads attributes. Returns a function that applies them to the text of the rule, or none if they change nothing.
  std::function<RuleExpr(RuleExpr)> Attributes();
  // Throws for text that Lark allows behind a name, but that has no meaning here.
  void RefuseExtensions();
  void FinishText(const TextRule& rule);
  // In `x* tail` where `x` has a lazy head, text that matches the head belongs to the loop. Excludes it from the tail.
  void LazyHeads(const RuleExpr& expr, std::set<uint32_t>* visited, std::vector<NodeId>* heads);
  void GuardTails(RuleExpr* expr);

  // Items of a rule. Lexeme: a token of a rule, followed by ignored text.
  RuleExpr Lexeme(RuleExpr expr);
  RuleExpr Alternatives(int depth);
  RuleExpr Items(int depth);
  bool Quantify(RuleExpr* item);
  RuleExpr Item(int depth);
  NodeId Literal(const std::string& text, bool ignore_case, size_t where);
  NodeId Quoted();
  NodeId Class();
  // `pattern` is in the text at `where`, unquoted or (`is_string`) in quotes.
  NodeId Expression(const std::string& pattern, const RegexOptions& options, size_t where, bool is_string);
  void Flag(char flag, RegexOptions* options, size_t where) const;
  // Reads <name>, <[1,3-5]> or <[*]>, or the complements !<name>, <[^1]>.
  RuleExpr Tokens();
  uint32_t Special(std::string_view name, size_t where) const;
  uint32_t TokenNumber(size_t where);

  // Calls (EBNF only).
  RuleExpr Call(const std::string& name, size_t start);
  NodeId RegexCall();
  RuleExpr DispatchCall();
  // Reads `name =`, and optionally `true` or `false`.
  std::string Option();
  bool Boolean();

  // Directives and other syntax of Lark only.
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
  enum class Body { kRule, kTerminal, kEdited, kIgnore } body_ = Body::kRule;  // kind of body being read
};

}  // namespace onpolicy::grammar
