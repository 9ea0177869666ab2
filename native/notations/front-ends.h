// The front ends: each turns one notation into a symbol of the grammar and throws SpecError when it cannot.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/warning.h"
#include "json-schema/options.h"
#include "json/value.h"
#include "mask/vocabulary.h"
#include "pushdown/grammar.h"
#include "regex/char-class.h"

namespace onpolicy::grammar {

// What front ends share while one specification is compiled.
struct FrontEnd {
  Grammar& grammar;
  const Vocabulary& vocabulary;
  SchemaOptions schema;
  std::vector<Warning> warnings;
};

Symbol SchemaSymbol(FrontEnd& front, JsonValue schema, const SchemaOptions& options);
Symbol SchemaText(FrontEnd& front, std::string_view text);
Symbol ChoiceSymbol(FrontEnd& front, const std::vector<std::string>& choices);
// GBNF, EBNF or Lark, told apart by "::=".
Symbol GrammarSymbol(FrontEnd& front, std::string_view text);
Symbol EbnfSymbol(FrontEnd& front, std::string_view text, std::string_view root);
// `form`: the text of the grammar as it is, or inside a JSON string.
Symbol LarkSymbol(FrontEnd& front, std::string_view text, int depth, TextForm form = TextForm::kPlain);
Symbol RegexSymbol(FrontEnd& front, std::string_view pattern, TextForm form = TextForm::kPlain);
Symbol StructuralTagSymbol(FrontEnd& front, std::string_view text);

}  // namespace onpolicy::grammar
