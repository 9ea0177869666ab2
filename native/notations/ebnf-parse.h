// GBNF and EBNF text -> rules. One parser for both dialects: `name ::= ...`, literals, classes, counted repetition,
// token literals, and the calls Regex, Substring, TagDispatch, Token and ExcludeToken.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "notations/ebnf-text.h"
#include "notations/front-ends.h"
#include "pushdown/rule-set.h"
#include "regex/parse.h"

namespace onpolicy::grammar {

class EbnfParser : private EbnfText {
 public:
  EbnfParser(FrontEnd& front, std::string_view text)
      : EbnfText(text), front_(front), pool_(front.grammar.regex()), plain_(pool_, TextForm::kPlain),
        rules_(std::make_shared<RuleSet>(front.grammar)) {}

  Symbol Parse(std::string_view root);

 private:
  uint32_t RuleOf(const std::string& name);
  void Rule();
  RuleExpr Alternatives(int depth);
  RuleExpr Items(int depth);
  bool Quantifier(RuleExpr* item);
  RuleExpr Item(int depth);
  NodeId Class();
  // <[12]>, <name> and their negations with '!'.
  RuleExpr Tokens();
  uint32_t Special(std::string_view name, size_t where);
  RuleExpr TokensOf(TokenSet set, size_t where);

  // Calls.
  RuleExpr Call(const std::string& name, size_t start);
  RuleExpr RegexCall();
  RuleExpr DispatchCall();

  FrontEnd& front_;
  RegexPool& pool_;
  CharEncoder plain_;
  std::shared_ptr<RuleSet> rules_;
  std::map<std::string, uint32_t> names_;
  std::map<std::string, size_t> first_use_;
};

}  // namespace onpolicy::grammar
