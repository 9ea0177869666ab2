// Syntax of Lark only: directives, imported terminals, expressions between slashes, embedded schemas and grammars.
#include "base/utf8.h"
#include "grammar/notations/grammar-parser.h"
#include "grammar/pushdown/text-tools.h"

namespace onpolicy::grammar {

// Terminals of the module `common` as regular expressions.
static const std::map<std::string, std::string, std::less<>>& CommonTerminals() {
  static const std::map<std::string, std::string, std::less<>> terminals = [] {
    const std::string exponent = "[eE][+-]?[0-9]+";
    const std::string decimal = "(?:[0-9]+\\.[0-9]*|\\.[0-9]+)";
    const std::string real = "(?:[0-9]+" + exponent + "|" + decimal + "(?:" + exponent + ")?)";
    return std::map<std::string, std::string, std::less<>>{
        {"DIGIT", "[0-9]"}, {"HEXDIGIT", "[0-9a-fA-F]"}, {"INT", "[0-9]+"}, {"SIGNED_INT", "[+-]?[0-9]+"},
        {"DECIMAL", decimal}, {"_EXP", exponent}, {"FLOAT", real}, {"SIGNED_FLOAT", "[+-]?" + real},
        {"NUMBER", "(?:" + real + "|[0-9]+)"}, {"SIGNED_NUMBER", "[+-]?(?:" + real + "|[0-9]+)"},
        {"ESCAPED_STRING", "\"(?:[^\"\\\\\\n]|\\\\[^\\n])*\""}, {"LCASE_LETTER", "[a-z]"}, {"UCASE_LETTER", "[A-Z]"},
        {"LETTER", "[a-zA-Z]"}, {"WORD", "[a-zA-Z]+"}, {"CNAME", "[_a-zA-Z][_a-zA-Z0-9]*"}, {"WS_INLINE", "[ \\t]+"},
        {"WS", "[ \\t\\f\\r\\n]+"}, {"CR", "\\r"}, {"LF", "\\n"}, {"NEWLINE", "(?:\\r?\\n)+"}, {"SH_COMMENT", "#[^\\n]*"},
        {"CPP_COMMENT", "//[^\\n]*"}, {"C_COMMENT", "/\\*(?:[^*]|\\*+[^*/])*\\*+/"}, {"SQL_COMMENT", "--[^\\n]*"}};
  }();
  return terminals;
}

void GrammarParser::Directive() {
  const size_t start = at_;
  if (Take("%import")) {
    Blank();
    if (Name() != "common") Unsupported("only the module 'common' can be imported", start);
    Blank();
    if (Take("(")) {
      List([&] {
        const std::string name = Name();
        Import(name, name, start);
      });
      return Expect(")");
    }
    Expect(".");
    const std::string name = Name();
    Blank();
    const bool has_alias = Take("->");
    if (has_alias) Blank();
    Import(name, has_alias ? Name() : name, start);
  } else if (Take("%ignore")) {
    body_ = Body::kIgnore;
    ignores_.push_back(Alternatives(0));
    body_ = Body::kRule;
    rules_->Define(ignore_rule_, RuleExpr::Choice(ignores_));
  } else if (Take("%grammar_options")) {
    const JsonValue options = Json();
    if (!options.IsObject()) Fail("expected an object", start);
    for (const auto& [key, value] : options.members) {
      if (!value.IsBool()) Fail("the option '" + key + "' must be a boolean", start);
      if (key == "allow_initial_skip") {
        initial_skip_ = value.type == JsonValue::kTrue;
      } else if ((key != "no_forcing" && key != "allow_invalid_utf8") || value.type == JsonValue::kTrue) {
        Unsupported("the option '" + key + "' is not supported", start);
      }
    }
  } else {
    Unsupported("this directive is not supported", start);
  }
}

void GrammarParser::Import(const std::string& name, const std::string& alias, size_t where) {
  const auto it = CommonTerminals().find(name);
  if (it == CommonTerminals().end()) Fail("'common' has no terminal '" + name + "'", where);
  if (!IsTerminal(alias)) Fail("expected a terminal name", where);
  rules_->Define(NewRule(alias, where), RuleExpr::Text(Expression(it->second, {}, where, true)));
}

NodeId GrammarParser::SlashExpression() {
  const size_t start = at_++;
  for (bool in_class = false; Peek() != '/' || in_class;) {
    if (AtEnd() || Peek() == '\n') Fail("unterminated expression", start);
    if (Peek() == '[') in_class = true;
    if (Peek() == ']') in_class = false;
    at_ += Peek() == '\\' ? 2 : 1;
  }
  const std::string pattern(text_.substr(start + 1, at_ - start - 1));
  at_++;
  RegexOptions options;
  for (; IsWord(Peek()); at_++) Flag(Peek(), &options, at_);
  return Expression(pattern, options, start + 1, false);
}

Symbol GrammarParser::Embedded() {
  const size_t start = at_;
  const auto inner = [&](size_t where, bool is_text, const auto& compile) {
    try {
      return compile();
    } catch (const SpecError& error) {
      throw error.Within(LineAndColumn(text_, where), where + (is_text ? error.offset().value_or(0) : 0));
    }
  };
  if (body_ == Body::kTerminal && !text_.substr(at_).starts_with("%regex")) Fail("a terminal cannot hold this", start);
  if (Take("%lark")) {
    Blank();
    if (Peek() != '{') Fail("expected '{'");
    const size_t open = at_ + 1;
    const std::string_view whole = Brackets();
    const std::string_view text = whole.substr(1, whole.size() - 2);
    return inner(open, true, [&] { return GrammarSymbol(front_, text, Dialect::kLark, form_, depth_ + 1); });
  }
  if (form_ != TextForm::kPlain) Unsupported("this cannot be written inside a JSON string", start);
  if (Take("%json")) {
    JsonValue schema = Json();
    return inner(start, false, [&] { return SchemaSymbol(front_, std::move(schema), front_.schema); });
  }
  if (!Take("%regex")) Unsupported("this directive is not supported", start);
  const JsonValue spec = Json();
  if (!spec.IsObject() || spec.members.size() != 1) Fail("expected an object with one field", start);
  const auto& [key, value] = spec.members[0];
  std::vector<std::string> chunks;
  if (key == "substring_chars" && value.IsString()) {
    for (size_t at = 0; at < value.text.size();) {
      const size_t from = at;
      ReadCodePoint(value.text, &at);
      chunks.push_back(value.text.substr(from, at - from));
    }
  } else if (key == "substring_chunks" && value.IsArray()) {
    for (const JsonValue& item : value.items) {
      if (!item.IsString()) Fail("expected a list of strings", start);
      chunks.push_back(item.text);
    }
  } else {
    Unsupported("'" + key + "' is not supported here", start);
  }
  return front_.grammar.Terminal(ChunkRun(pool_, chunks));
}

}  // namespace onpolicy::grammar
