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

  // One of `tokens`, or with `inverted` any other token.
  Symbol OneOf(std::vector<uint32_t> tokens, bool inverted) const;
};

enum class Dialect { kEbnf, kLark };  // kEbnf: GBNF too

// `text` behind `from` as JSON. `what` it is, for an error with its line and column.
JsonValue ReadJson(std::string_view text, const char* what, size_t from = 0);

Symbol SchemaSymbol(FrontEnd& front, JsonValue schema, const SchemaOptions& options);
// EBNF if any line holds "::=" outside a comment.
Dialect DialectOf(std::string_view text);
// `form`: the text of the grammar as it is, or inside a JSON string. `depth`: of grammars around this one.
Symbol GrammarSymbol(FrontEnd& front, std::string_view text, Dialect dialect, TextForm form = TextForm::kPlain, int depth = 0);
Symbol RegexSymbol(FrontEnd& front, std::string_view pattern, TextForm form = TextForm::kPlain);
Symbol StructuralTagSymbol(FrontEnd& front, std::string_view text);

}  // namespace onpolicy::grammar
