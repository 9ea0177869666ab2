// Lark text -> rules: rules and terminals, `common` imports, %ignore, lazy and suffixed rules, embedded JSON Schemas,
// nested grammars and token literals. A text matches when any parse of it does; terminals do not compete by length.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "notations/front-ends.h"
#include "notations/lark-text.h"
#include "pushdown/rule-set.h"
#include "regex/parse.h"

namespace onpolicy::grammar {

class LarkParser : private LarkText {
 public:
  LarkParser(FrontEnd& front, std::string_view text, int depth, TextForm form)
      : LarkText(text), front_(front), pool_(front.grammar.regex()), depth_(depth), form_(form), encoder_(pool_, form),
        rules_(std::make_shared<RuleSet>(front.grammar)) {}

  Symbol Parse();

 private:
  struct LazyRule {
    uint32_t rule;
    size_t where;
    bool shortest;     // lazy
    bool has_suffix;
    RuleExpr suffix;
  };

  // Statements.
  uint32_t RuleOf(const std::string& name);
  // Runs first: %ignore also applies to the rules above it.
  void FindIgnores();
  RuleExpr Ignored() { return RuleExpr::Repeat(RuleExpr::Reference(ignore_rule_), 0, kUnlimited); }
  void Statement();
  void Attributes(bool is_terminal, LazyRule* lazy);
  void FinishLazy(const LazyRule& lazy);
  // In `x* tail` where `x` has a lazy head, text that matches the head belongs to the loop: excludes it from the tail.
  void LazyHeads(const RuleExpr& expr, std::set<uint32_t>* visited, std::vector<NodeId>* heads);
  void GuardTails(RuleExpr* expr);
  void Directive();
  void Import(const std::string& name, const std::string& alias, size_t where);

  // Items of a rule.
  // A token of a rule, followed by ignored text.
  RuleExpr Lexeme(RuleExpr expr);
  RuleExpr Alternatives(int depth);
  RuleExpr Items(int depth);
  void Quantify(RuleExpr* item);
  RuleExpr Item(int depth);
  NodeId Literal(const std::string& text, bool ignore_case, size_t where);
  RuleExpr Quoted();
  NodeId Regex();
  RuleExpr Embedded();
  // Refuses what has no form inside a JSON string.
  void RequirePlain(size_t where) const;
  // <name>, <[1,3-5]>, <[^1]>, <[*]>.
  RuleExpr Tokens();

  FrontEnd& front_;
  RegexPool& pool_;
  int depth_;
  TextForm form_;
  CharEncoder encoder_;
  std::shared_ptr<RuleSet> rules_;
  std::map<std::string, uint32_t> names_;
  std::map<std::string, size_t> first_use_;
  std::vector<std::pair<uint32_t, size_t>> terminal_rules_, plain_rules_;
  std::vector<LazyRule> lazy_rules_;
  std::map<uint32_t, NodeId> lazy_text_;
  std::vector<RuleExpr> ignores_;
  uint32_t ignore_rule_ = 0;
  bool has_ignore_ = false, initial_skip_ = false;
  bool in_terminal_ = false, in_named_terminal_ = false, lazy_body_ = false;
};

}  // namespace onpolicy::grammar
