// The front ends: each converts one notation to a symbol of the grammar, and throws SpecError if it cannot.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/spec-error.h"
#include "grammar/json-schema/options.h"
#include "grammar/json/value.h"
#include "grammar/mask/vocabulary.h"
#include "grammar/pushdown/grammar.h"
#include "grammar/regex/char-class.h"

namespace onpolicy::grammar {

// State that the front ends share while one specification is compiled.
struct FrontEnd {
  Grammar& grammar;
  const Vocabulary& vocabulary;
  SchemaOptions schema;
  std::vector<Warning> warnings;

  // Returns a symbol for one of `tokens`, or with `inverted` for any other token.
  Symbol OneOf(std::vector<uint32_t> tokens, bool inverted) const;
};

enum class Dialect { kEbnf, kLark };  // kEbnf: GBNF too

// Parses `text` from `from` on as JSON. `what`: name of the text in an error, which has line and column.
JsonValue ReadJson(std::string_view text, const char* what, size_t from = 0);

Symbol SchemaSymbol(FrontEnd& front, JsonValue schema, const SchemaOptions& options);
// Returns EBNF if any line contains "::=" outside a comment, else Lark.
Dialect DialectOf(std::string_view text);
// `form`: whether the grammar's text is used unchanged or inside a JSON string. `depth`: number of grammars around this one.
Symbol GrammarSymbol(FrontEnd& front, std::string_view text, Dialect dialect, TextForm form = TextForm::kPlain, int depth = 0);
Symbol RegexSymbol(FrontEnd& front, std::string_view pattern, TextForm form = TextForm::kPlain);
Symbol StructuralTagSymbol(FrontEnd& front, std::string_view text);

}  // namespace onpolicy::grammar
