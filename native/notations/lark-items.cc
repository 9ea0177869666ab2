// The items of a Lark rule: alternatives, repetitions, literals, expressions, embedded grammars, tokens.
#include <algorithm>
#include <cctype>

#include "base/limits.h"
#include "base/utf8.h"
#include "notations/lark-parse.h"
#include "pushdown/text-tools.h"
#include "regex/char-class.h"

namespace onpolicy::grammar {

RuleExpr LarkParser::Lexeme(RuleExpr expr) {
  if (!has_ignore_ || in_terminal_) return expr;
  return RuleExpr::Sequence({std::move(expr), Ignored()});
}

RuleExpr LarkParser::Alternatives(int depth) {
  return ReadChoice(depth > limits::kLarkDepth, [&] { return Items(depth); }, [&] { Blank(); });
}

RuleExpr LarkParser::Items(int depth) {
  std::vector<RuleExpr> parts;
  while (true) {
    Blank();
    if (AtEnd() || Peek() == '|' || Peek() == ')' || Peek() == ']' || AtStatement()) break;
    if (Take("->")) {
      InlineBlank();
      if (Name().empty()) Fail("expected an alias name");
      continue;
    }
    RuleExpr item = Item(depth);
    Quantify(&item);
    parts.push_back(std::move(item));
  }
  return RuleExpr::Sequence(std::move(parts));
}

void LarkParser::Quantify(RuleExpr* item) {
  const size_t start = at_;
  uint32_t min = 0, max = kUnlimited;
  InlineBlank();
  if (Take("*")) {
  } else if (Take("+")) {
    min = 1;
  } else if (Peek() == '?' && !IsNameChar(Peek(1))) {
    at_++;
    max = 1;
  } else if (Take("~")) {
    InlineBlank();
    min = max = Number();
    InlineBlank();
    if (Take("..")) {
      InlineBlank();
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
    Blank();
    if (!Take("}")) Fail("expected '}'");
  } else {
    at_ = start;
    return;
  }
  if (max < min) Fail("the counts of a repetition are out of order", start);
  *item = RuleExpr::Repeat(std::move(*item), min, max);
}

RuleExpr LarkParser::Item(int depth) {
  const size_t start = at_;
  const char c = Peek();
  if (c == '(' || c == '[') {
    at_++;
    RuleExpr inner = Alternatives(depth + 1);
    Blank();
    if (!Take(c == '(' ? ")" : "]")) Fail("unclosed group", start);
    return c == '(' ? inner : RuleExpr::Repeat(std::move(inner), 0, 1);
  }
  if (c == '"') return Lexeme(Quoted());
  if (c == '/') return Lexeme(RuleExpr::Text(Regex()));
  if (c == '<') return Tokens();
  if (c == '%') return Embedded();
  if (c == '@') Unsupported("named grammars are not supported", start);
  if (c == '&' || c == '~') Unsupported("intersection and complement are not supported", start);
  const std::string name = Name();
  if (name.empty()) Fail("unexpected character");
  if (Peek() == '{' && !(Peek(1) >= '0' && Peek(1) <= '9') && Peek(1) != ',') Unsupported("templates are not supported", at_);
  if (Peek() == ':' && Peek(1) == ':') Unsupported("parametric rules are not supported", at_);
  const bool is_terminal = IsTerminalName(name);
  if (!is_terminal && in_named_terminal_) Fail("a terminal must not refer to the rule '" + name + "'", start);
  if (!is_terminal && lazy_body_) Unsupported("a lazy or suffixed rule must hold only terminals", start);
  first_use_.emplace(name, start);
  RuleExpr reference = RuleExpr::Reference(RuleOf(name));
  return is_terminal ? Lexeme(std::move(reference)) : reference;
}

NodeId LarkParser::Literal(const std::string& text, bool ignore_case, size_t where) {
  if (!ignore_case) return form_ == TextForm::kPlain ? pool_.Literal(text) : encoder_.Text(text);
  std::vector<NodeId> parts;
  NodeId node = kEpsilon;
  for (size_t i = text.size(); i-- > 0;) {
    const uint8_t byte = static_cast<uint8_t>(text[i]);
    if (byte >= 0x80) Unsupported("the flag i is supported for ASCII only", where);
    node = pool_.Concat(encoder_.Class(WithBothCases({{byte, byte}}).size() > 1 && std::isalpha(byte)
                                         ? Normalized({{byte | 0x20u, byte | 0x20u}, {byte & ~0x20u, byte & ~0x20u}})
                                         : CodePoints{{byte, byte}}),
                        node);
  }
  return node;
}

RuleExpr LarkParser::Quoted() {
  const size_t start = at_;
  bool ignore_case = false;
  const std::string text = String(&ignore_case);
  const size_t after = at_;
  InlineBlank();
  if (!Take("..")) {
    at_ = after;
    return RuleExpr::Text(Literal(text, ignore_case, start));
  }
  InlineBlank();
  bool end_case = false;
  if (Peek() != '"') Fail("expected a string");
  const std::string last = String(&end_case);
  size_t from = 0, to = 0;
  if (text.empty() || last.empty()) Fail("a range goes from one character to another", start);
  const uint32_t low = ReadCodePoint(text, &from), high = ReadCodePoint(last, &to);
  if (ignore_case || end_case || from != text.size() || to != last.size())
    Fail("a range goes from one character to another, without flags", start);
  if (low > high) Fail("the range is out of order", start);
  return RuleExpr::Text(encoder_.Class({{low, high}}));
}

NodeId LarkParser::Regex() {
  const size_t start = at_++;
  bool in_class = false;
  while (!AtEnd() && Peek() != '\n' && (Peek() != '/' || in_class)) {
    if (Peek() == '[') in_class = true;
    if (Peek() == ']') in_class = false;
    at_ += Peek() == '\\' ? 2 : 1;
  }
  if (AtEnd() || Peek() != '/') Fail("unterminated expression", start);
  const std::string pattern(text_.substr(start + 1, at_ - start - 1));
  at_++;
  RegexOptions options;
  for (; IsNameChar(Peek()); at_++) {
    if (Peek() == 'i') {
      options.ignore_case = true;
    } else if (Peek() == 's') {
      options.dot_all = true;
    } else if (Peek() != 'u') {
      Unsupported(std::string("the flag '") + Peek() + "' is not supported", at_);
    }
  }
  ParseError error;
  const NodeId node = ParseRegex(pattern, options, encoder_, &error);
  if (!error.ok()) {
    if (error.unsupported) Unsupported(error.message, start + 1 + error.position);
    Fail(error.message, start + 1 + error.position);
  }
  return node;
}

RuleExpr LarkParser::Embedded() {
  const size_t start = at_;
  if (in_named_terminal_ && !(text_.substr(at_, 6) == "%regex")) Fail("a terminal cannot hold this", start);
  if (!text_.substr(at_).starts_with("%lark")) RequirePlain(start);
  if (Take("%json")) {
    JsonValue schema = Json();
    try {
      return Lexeme(RuleExpr::Of(SchemaSymbol(front_, std::move(schema), front_.schema)));
    } catch (const SpecError& error) {
      throw error.Within(LineAndColumn(text_, start), start);
    }
  }
  if (Take("%regex")) {
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
    return Lexeme(RuleExpr::Text(ChunkRun(pool_, chunks)));
  }
  if (Take("%lark")) {
    Blank();
    if (Peek() != '{') Fail("expected '{'");
    const size_t open = at_ + 1;
    size_t depth = 0;
    while (!AtEnd()) {
      if (Peek() == '"') {
        at_ += SkipString();
        continue;
      }
      if (Peek() == '{') depth++;
      if (Peek() == '}' && --depth == 0) break;
      at_++;
    }
    if (AtEnd()) Fail("unclosed '{'", open);
    const std::string inner(text_.substr(open, at_ - open));
    at_++;
    try {
      return Lexeme(RuleExpr::Of(LarkSymbol(front_, inner, depth_ + 1, form_)));
    } catch (const SpecError& error) {
      throw error.Within(LineAndColumn(text_, open), open + error.offset().value_or(0));
    }
  }
  Unsupported("this directive is not supported", start);
}

void LarkParser::RequirePlain(size_t where) const {
  if (form_ != TextForm::kPlain) Unsupported("this cannot be written inside a JSON string", where);
}

RuleExpr LarkParser::Tokens() {
  const size_t start = at_;
  RequirePlain(start);
  if (in_terminal_) Fail("a terminal cannot hold tokens", start);
  const size_t end = text_.find('>', at_);
  if (end == std::string_view::npos) Fail("unclosed token", start);
  const std::string_view whole = text_.substr(start, end + 1 - start);
  TokenSet set;
  if (whole.size() > 1 && whole[1] == '[') {
    at_ += 2;
    set.inverted = Take("^");
    if (!set.inverted && Take("*")) {
      set.inverted = true;
    } else {
      do {
        const uint32_t low = Number();
        const uint32_t high = Take("-") ? Number() : low;
        if (high < low || high >= front_.vocabulary.size()) Fail("invalid token range", start);
        for (uint32_t token = low; token <= high; token++) set.tokens.push_back(token);
      } while (Take(","));
    }
    if (!Take("]>")) Fail("expected ']>'");
  } else {
    if (whole.find_first_of(" \t\n") != std::string_view::npos) Fail("a token name holds no blanks", start);
    const int64_t token = front_.vocabulary.FindSpecial(whole);
    if (token < 0) Fail("the vocabulary has no special token '" + std::string(whole) + "'", start);
    set.tokens.push_back(static_cast<uint32_t>(token));
    at_ = end + 1;
  }
  std::sort(set.tokens.begin(), set.tokens.end());
  set.tokens.erase(std::unique(set.tokens.begin(), set.tokens.end()), set.tokens.end());
  return Lexeme(RuleExpr::Of(front_.grammar.Tokens(std::move(set))));
}

}  // namespace onpolicy::grammar
