// The items in a rule of a grammar: alternatives, repetitions, strings, classes, tokens, references.
#include <algorithm>
#include <cctype>

#include "base/limits.h"
#include "base/utf8.h"
#include "grammar/notations/grammar-parser.h"

namespace onpolicy::grammar {

RuleExpr GrammarParser::Lexeme(RuleExpr expr) {
  if (!has_ignore_ || body_ != Body::kRule) return expr;
  return RuleExpr::Sequence({std::move(expr), Ignored()});
}

RuleExpr GrammarParser::Alternatives(int depth) {
  if (depth > limits::kGrammarDepth) Fail("nested too deeply");
  std::vector<RuleExpr> options;
  do options.push_back(Items(depth));
  while (Take("|"));
  return RuleExpr::Choice(std::move(options));
}

RuleExpr GrammarParser::Items(int depth) {
  std::vector<RuleExpr> parts;
  for (Blank(); !AtEnd() && Peek() != '|' && Peek() != ')' && Peek() != ']' && !AtStatement(); Blank()) {
    if (is_lark_ && Take("->")) {
      Blank();
      if (Name().empty()) Fail("expected an alias name");
      continue;
    }
    RuleExpr item = Item(depth);
    while (Quantify(&item) && !is_lark_) {
    }
    parts.push_back(std::move(item));
  }
  return RuleExpr::Sequence(std::move(parts));
}

bool GrammarParser::Quantify(RuleExpr* item) {
  const size_t start = at_;
  is_lark_ ? InlineBlank() : Blank();
  uint32_t min = 0, max = kUnlimited;
  if (Take("*")) {
  } else if (Take("+")) {
    min = 1;
  } else if (Peek() == '?' && !(is_lark_ && IsWord(Peek(1)))) {
    at_++;
    max = 1;
  } else if (is_lark_ && Take("~")) {
    Blank();
    min = max = Number();
    Blank();
    if (Take("..")) {
      Blank();
      max = Number();
    }
  } else if (Take("{")) {
    Blank();
    if (Peek() != ',') min = Number();
    max = min;
    Blank();
    if (Take(",")) {
      Blank();
      max = Peek() == '}' ? kUnlimited : Number();
    }
    Expect("}");
  } else {
    at_ = start;
    return false;
  }
  if (max < min) Fail("the counts of a repetition are out of order", start);
  *item = RuleExpr::Repeat(std::move(*item), min, max);
  return true;
}

RuleExpr GrammarParser::Item(int depth) {
  const size_t start = at_;
  const char c = Peek();
  if (c == '(' || (c == '[' && is_lark_)) {
    at_++;
    if (Peek() == '=') Unsupported("look-ahead is not supported", start);
    RuleExpr inner = Alternatives(depth + 1);
    if (!Take(c == '(' ? ")" : "]")) Fail("unclosed group", start);
    return c == '(' ? inner : RuleExpr::Repeat(std::move(inner), 0, 1);
  }
  if (c == '"') return Lexeme(RuleExpr::Text(Quoted()));
  if (c == '<' || (c == '!' && Peek(1) == '<')) return Lexeme(Tokens());
  if (is_lark_) {
    if (c == '/') return Lexeme(RuleExpr::Text(SlashExpression()));
    if (c == '%') return Lexeme(RuleExpr::Of(Embedded()));
    if (c == '@') Unsupported("named grammars are not supported", start);
    if (c == '&' || c == '~') Unsupported("intersection and complement are not supported", start);
  } else {
    if (c == '[') return RuleExpr::Text(Class());
    if (Take(".")) return RuleExpr::Text(encoder_.Any());
  }
  const std::string name = Name();
  if (name.empty()) Fail("unexpected character");
  if (!is_lark_ && Take("(")) return Call(name, start);
  RefuseExtensions();
  const bool is_terminal = IsTerminal(name);
  if (is_lark_ && !is_terminal && body_ == Body::kTerminal) Fail("a terminal must not refer to the rule '" + name + "'", start);
  if (is_lark_ && !is_terminal && body_ == Body::kEdited)
    Unsupported("a lazy or suffixed rule must hold only terminals", start);
  RuleExpr reference = Reference(name, start);
  return is_terminal ? Lexeme(std::move(reference)) : reference;
}

NodeId GrammarParser::Literal(const std::string& text, bool ignore_case, size_t where) {
  if (!ignore_case) return form_ == TextForm::kPlain ? pool_.Literal(text) : encoder_.Text(text);
  NodeId node = kEpsilon;
  for (size_t i = text.size(); i-- > 0;) {
    const uint8_t byte = static_cast<uint8_t>(text[i]);
    if (byte >= 0x80) Unsupported("the flag i is supported for ASCII only", where);
    const uint32_t upper = std::isalpha(byte) ? byte & ~0x20u : byte, lower = std::isalpha(byte) ? byte | 0x20u : byte;
    node = pool_.Concat(encoder_.Class(Normalized({{upper, upper}, {lower, lower}})), node);
  }
  return node;
}

NodeId GrammarParser::Quoted() {
  const size_t start = at_;
  const std::string text = String();
  const bool ignore_case = is_lark_ && Peek() == 'i';
  while (is_lark_ && Take("i")) {
  }
  if (is_lark_ && IsWord(Peek())) Fail("unknown flag");
  const size_t after = at_;
  Blank();
  if (!is_lark_ || !Take("..")) {
    at_ = after;
    return Literal(text, ignore_case, start);
  }
  const std::string last = String();
  const auto one = [&](const std::string& character) {
    size_t end = 0;
    const uint32_t code = character.empty() ? 0 : ReadCodePoint(character, &end);
    if (end == 0 || end != character.size() || ignore_case || IsWord(Peek()))
      Fail("a range goes from one character to another, without flags", start);
    return code;
  };
  const uint32_t low = one(text), high = one(last);
  if (low > high) Fail("the range is out of order", start);
  return encoder_.Class({{low, high}});
}

NodeId GrammarParser::Class() {
  const size_t start = at_++;
  const bool inverted = Take("^");
  CodePoints ranges;
  while (!Take("]")) {
    if (AtEnd() || Peek() == '\n') Fail("unclosed character class", start);
    const uint32_t low = Character();
    uint32_t high = low;
    if (Peek() == '-' && Peek(1) != ']' && Peek(1) != '\0') {
      at_++;
      high = Character();
      if (high < low) Fail("character range out of order");
    }
    ranges.push_back({low, high});
  }
  if (ranges.empty() && !inverted) Fail("empty character class", start);
  ranges = Normalized(std::move(ranges));
  return encoder_.Class(inverted ? Inverted(ranges) : ranges);
}

NodeId GrammarParser::Expression(const std::string& pattern, const RegexOptions& options, size_t where, bool is_string) {
  try {
    return ParseRegex(pattern, options, encoder_);
  } catch (const ParseError& error) {
    const std::string prefix = is_string ? "in the expression, at offset " + std::to_string(error.position) + ": " : "";
    const size_t at = is_string ? where : where + error.position;
    if (error.unsupported) Unsupported(prefix + error.message, at);
    Fail(prefix + error.message, at);
  }
}

void GrammarParser::Flag(char flag, RegexOptions* options, size_t where) const {
  if (flag == 'i') {
    options->ignore_case = true;
  } else if (flag == 's') {
    options->dot_all = true;
  } else if (flag != 'u') {
    Unsupported(std::string("the flag '") + flag + "' is not supported", where);
  }
}

RuleExpr GrammarParser::Tokens() {
  const size_t start = at_;
  if (form_ != TextForm::kPlain) Unsupported("this cannot be written inside a JSON string", start);
  if (body_ != Body::kRule) Fail("a terminal cannot hold tokens", start);
  bool inverted = Take("!");
  const size_t open = at_++;
  std::vector<uint32_t> tokens;
  if (Take("[")) {
    inverted = Take("^") || inverted;
    if (!inverted && Take("*")) {
      inverted = true;
    } else {
      List([&] {
        const uint32_t low = TokenNumber(start), high = Take("-") ? TokenNumber(start) : low;
        if (high < low) Fail("invalid token range", start);
        for (uint32_t token = low; token <= high; token++) tokens.push_back(token);
      });
    }
    Expect("]>");
  } else {
    const size_t end = text_.find_first_of(">\n", at_);
    if (end == std::string_view::npos || text_[end] == '\n') Fail("unclosed token name", start);
    at_ = end + 1;
    tokens.push_back(Special(text_.substr(open, at_ - open), start));
  }
  return RuleExpr::Of(front_.OneOf(std::move(tokens), inverted));
}

uint32_t GrammarParser::Special(std::string_view name, size_t where) const {
  const int64_t token = front_.vocabulary.FindSpecial(name);
  if (token < 0) Fail("the vocabulary has no special token '" + std::string(name) + "'", where);
  return static_cast<uint32_t>(token);
}

uint32_t GrammarParser::TokenNumber(size_t where) {
  const uint32_t token = Number();
  if (token >= front_.vocabulary.size()) Fail("the vocabulary has no token " + std::to_string(token), where);
  return token;
}

}  // namespace onpolicy::grammar
