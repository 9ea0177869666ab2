// GBNF and EBNF text -> rules. One parser for both dialects: `name ::= ...`, literals, classes, counted repetition,
// token literals, and the calls Regex, Substring, TagDispatch, Token and ExcludeToken.
#include <algorithm>
#include <map>

#include "grammar/char-class.h"
#include "grammar/front-ends.h"
#include "grammar/regex-parse.h"
#include "grammar/schema-error.h"
#include "grammar/text-tools.h"

namespace onpolicy::grammar {

namespace {

constexpr int kMaxDepth = 150;

class EbnfParser {
 public:
  EbnfParser(FrontEnd& front, std::string_view text)
      : front_(front), pool_(front.grammar.regex()), text_(text), plain_(pool_, TextForm::kPlain),
        rules_(std::make_shared<RuleSet>(front.grammar)) {}

  Symbol Parse(std::string_view root) {
    Blank();
    while (at_ < text_.size()) {
      Rule();
      Blank();
    }
    for (const auto& [name, use] : first_use_)
      if (!rules_->IsDefined(names_[name])) Fail("rule '" + name + "' is not defined", use);
    const auto start = names_.find(std::string(root));
    if (start == names_.end()) Fail("there is no rule '" + std::string(root) + "' to start from", 0);
    return rules_->Compile(start->second);
  }

 private:
  [[noreturn]] void Fail(const std::string& what, size_t at) const {
    throw SchemaError("INVALID_REQUEST", LineAndColumn(text_, at), what);
  }
  [[noreturn]] void Fail(const std::string& what) const { Fail(what, at_); }
  [[noreturn]] void Unsupported(const std::string& what, size_t at) const {
    throw SchemaError("UNSUPPORTED", LineAndColumn(text_, at), what);
  }

  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool Take(std::string_view prefix) {
    if (text_.substr(at_, prefix.size()) != prefix) return false;
    at_ += prefix.size();
    return true;
  }
  void Blank() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') at_++;
      } else if (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r') {
        at_++;
      } else {
        return;
      }
    }
  }
  void Expect(std::string_view token) {
    Blank();
    if (!Take(token)) Fail("expected '" + std::string(token) + "'");
  }
  static bool IsNameChar(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  }
  std::string Name() {
    const size_t begin = at_;
    if (Peek() != '.' && Peek() != '-')
      while (IsNameChar(Peek())) at_++;
    return std::string(text_.substr(begin, at_ - begin));
  }

  // Whether a rule's head stands here: a name, perhaps attributes, and "::=".
  bool AtRule() {
    const size_t saved = at_;
    bool result = false;
    if (!Name().empty()) {
      if (Peek() == '[')
        while (at_ < text_.size() && Peek() != ']' && Peek() != '\n') at_++;
      if (Peek() == ']') at_++;
      while (Peek() == ' ' || Peek() == '\t') at_++;
      result = text_.substr(at_, 3) == "::=";
    }
    at_ = saved;
    return result;
  }

  uint32_t RuleOf(const std::string& name) {
    auto [it, is_new] = names_.emplace(name, 0);
    if (is_new) it->second = rules_->Add();
    return it->second;
  }

  void Rule() {
    const size_t start = at_;
    const std::string name = Name();
    if (name.empty()) Fail("expected a rule name");
    bool lazy = false;
    int64_t max_chars = -1;
    if (Take("[")) {
      do {
        Blank();
        const size_t where = at_;
        const std::string attribute = Name();
        Blank();
        if (attribute == "lazy") {
          lazy = true;
        } else if (attribute == "max_chars" && Take("=")) {
          Blank();
          max_chars = static_cast<int64_t>(Number());
        } else {
          Unsupported("the rule attribute '" + attribute + "' is not supported", where);
        }
        Blank();
      } while (Take(","));
      Expect("]");
    }
    Expect("::=");
    const uint32_t rule = RuleOf(name);
    if (rules_->IsDefined(rule)) Fail("rule '" + name + "' is defined twice", start);
    RuleExpr body = Alternatives(0);
    if (lazy || max_chars >= 0) {
      NodeId node;
      if (!rules_->AsText(body, &node)) Unsupported("rule attributes need a body without references", start);
      if (max_chars >= 0)
        node = pool_.And({node, pool_.Repeat(plain_.Any(), 0, static_cast<uint32_t>(max_chars))});
      if (lazy) node = Shortest(pool_, node);
      body = RuleExpr::Text(node);
    }
    rules_->Define(rule, std::move(body));
    Blank();
    if (at_ < text_.size() && !AtRule()) Fail("unexpected character");
  }

  RuleExpr Alternatives(int depth) {
    if (depth > kMaxDepth) Fail("nested too deeply");
    std::vector<RuleExpr> options;
    do {
      options.push_back(Items(depth));
      Blank();
    } while (Take("|"));
    if (options.size() == 1) return std::move(options[0]);
    return RuleExpr::Choice(std::move(options));
  }

  RuleExpr Items(int depth) {
    std::vector<RuleExpr> parts;
    while (true) {
      Blank();
      if (at_ >= text_.size() || Peek() == '|' || Peek() == ')' || Peek() == ',' || AtRule()) break;
      RuleExpr item = Item(depth);
      while (Quantifier(&item)) {
      }
      parts.push_back(std::move(item));
    }
    if (parts.size() == 1) return std::move(parts[0]);
    return RuleExpr::Sequence(std::move(parts));
  }

  uint64_t Number() {
    if (Peek() < '0' || Peek() > '9') Fail("expected a number");
    uint64_t value = 0;
    for (; Peek() >= '0' && Peek() <= '9'; at_++)
      value = std::min<uint64_t>(value * 10 + static_cast<uint64_t>(Peek() - '0'), 1u << 31);
    if (value > 100000000) Fail("the number is too large");
    return value;
  }

  bool Quantifier(RuleExpr* item) {
    Blank();
    uint32_t min = 0, max = kUnlimited;
    const size_t start = at_;
    if (Take("*")) {
    } else if (Take("+")) {
      min = 1;
    } else if (Take("?")) {
      max = 1;
    } else if (Take("{")) {
      Blank();
      min = static_cast<uint32_t>(Number());
      max = min;
      Blank();
      if (Take(",")) {
        Blank();
        max = Peek() == '}' ? kUnlimited : static_cast<uint32_t>(Number());
      }
      Expect("}");
      if (max < min) Fail("the counts of a repetition are out of order", start);
    } else {
      return false;
    }
    *item = RuleExpr::Repeat(std::move(*item), min, max);
    return true;
  }

  RuleExpr Item(int depth) {
    const size_t start = at_;
    const char c = Peek();
    if (c == '"') return RuleExpr::Text(pool_.Literal(Literal()));
    if (c == '[') return RuleExpr::Text(Class());
    if (c == '<' || (c == '!' && Peek(1) == '<')) return Tokens();
    if (c == '.') {
      at_++;
      return RuleExpr::Text(plain_.Any());
    }
    if (c == '(') {
      at_++;
      if (Peek() == '=') Unsupported("look-ahead is not supported", start);
      RuleExpr inner = Alternatives(depth + 1);
      Blank();
      if (!Take(")")) Fail("unclosed group", start);
      return inner;
    }
    const std::string name = Name();
    if (name.empty()) Fail("unexpected character");
    if (Peek() == '(') return Call(name, start);
    const uint32_t rule = RuleOf(name);
    first_use_.emplace(name, start);
    return RuleExpr::Reference(rule);
  }

  uint32_t Hex(size_t digits) {
    uint32_t value = 0;
    for (size_t i = 0; i < digits; i++, at_++) {
      const char c = Peek();
      const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
      if (digit < 0) Fail("invalid hexadecimal escape");
      value = value * 16 + static_cast<uint32_t>(digit);
    }
    if (value > kLastCodePoint) Fail("the code point is too large");
    return value;
  }

  uint32_t Escape() {
    at_++;
    const char c = Peek();
    at_++;
    const std::string_view from = "nrtabfv0", to("\n\r\t\a\b\f\v\0", 8);
    if (const size_t index = from.find(c); c != '\0' && index != std::string_view::npos)
      return static_cast<uint8_t>(to[index]);
    if (c == 'x') return Hex(2);
    if (c == 'u') {
      const uint32_t code = Hex(4);
      if (code < 0xD800 || code > 0xDBFF || Peek() != '\\' || Peek(1) != 'u') return code;
      at_ += 2;
      return 0x10000 + ((code - 0xD800) << 10) + ((Hex(4) - 0xDC00) & 0x3FF);
    }
    if (c == 'U') return Hex(8);
    if (std::string_view("\"'?\\/[]-^.").find(c) != std::string_view::npos && c != '\0') return static_cast<uint8_t>(c);
    at_--;
    Fail("unknown escape");
  }

  std::string Literal() {
    const size_t start = at_++;
    std::string result;
    while (true) {
      if (at_ >= text_.size() || Peek() == '\n') Fail("unterminated string", start);
      if (Take("\"")) return result;
      if (Peek() == '\\') {
        AppendUtf8(Escape(), &result);
      } else {
        result.push_back(text_[at_++]);
      }
    }
  }

  NodeId Class() {
    const size_t start = at_++;
    const bool inverted = Take("^");
    CodePoints ranges;
    while (true) {
      if (at_ >= text_.size() || Peek() == '\n') Fail("unclosed character class", start);
      if (Take("]")) break;
      const auto one = [&] { return Peek() == '\\' ? Escape() : ReadCodePoint(text_, &at_); };
      const uint32_t low = one();
      uint32_t high = low;
      if (Peek() == '-' && Peek(1) != ']' && Peek(1) != '\0') {
        at_++;
        high = one();
        if (high < low) Fail("character range out of order");
      }
      ranges.push_back({low, high});
    }
    if (ranges.empty() && !inverted) Fail("empty character class", start);
    ranges = Normalized(std::move(ranges));
    return plain_.Class(inverted ? Inverted(ranges) : ranges);
  }

  // <[12]>, <name> and their negations with '!'.
  RuleExpr Tokens() {
    const size_t start = at_;
    TokenSet set;
    set.inverted = Take("!");
    at_++;
    if (Take("[")) {
      set.tokens.push_back(static_cast<uint32_t>(Number()));
      if (!Take("]>")) Fail("expected ']>'");
    } else {
      const size_t end = text_.find('>', at_);
      if (end == std::string_view::npos) Fail("unclosed token name", start);
      set.tokens.push_back(Special(text_.substr(start + (set.inverted ? 1 : 0), end + 1 - start - (set.inverted ? 1 : 0)), start));
      at_ = end + 1;
    }
    return TokensOf(std::move(set), start);
  }

  uint32_t Special(std::string_view name, size_t where) {
    const int64_t token = front_.vocabulary.FindSpecial(name);
    if (token < 0) Fail("the vocabulary has no special token '" + std::string(name) + "'", where);
    return static_cast<uint32_t>(token);
  }

  RuleExpr TokensOf(TokenSet set, size_t where) {
    for (uint32_t token : set.tokens)
      if (token >= front_.vocabulary.size()) Fail("the vocabulary has no token " + std::to_string(token), where);
    std::sort(set.tokens.begin(), set.tokens.end());
    return RuleExpr::Of(front_.grammar.Tokens(std::move(set)));
  }

  RuleExpr Call(const std::string& name, size_t start) {
    if (name == "Regex") return RegexCall();
    if (name == "Substring") {
      at_++;
      std::vector<std::string> chunks;
      do {
        Blank();
        if (Peek() != '"') Fail("expected a string");
        chunks.push_back(Literal());
        Blank();
      } while (Take(","));
      Expect(")");
      return RuleExpr::Text(ChunkRun(pool_, chunks));
    }
    if (name == "TagDispatch") return DispatchCall();
    if (name == "Token" || name == "ExcludeToken") {
      at_++;
      TokenSet set;
      set.inverted = name == "ExcludeToken";
      do {
        Blank();
        const size_t where = at_;
        set.tokens.push_back(Peek() == '"' ? Special(Literal(), where) : static_cast<uint32_t>(Number()));
        Blank();
      } while (Take(","));
      Expect(")");
      return TokensOf(std::move(set), start);
    }
    Unsupported("'" + name + "(...)' is not supported", start);
  }

  RuleExpr RegexCall() {
    at_++;
    Blank();
    const size_t start = at_;
    if (Peek() != '"') Fail("expected a string");
    const std::string pattern = Literal();
    RegexOptions options;
    bool json_string = false;
    options.allow_lookahead = true;
    Blank();
    while (Take(",")) {
      Blank();
      const size_t where = at_;
      const std::string option = Name();
      Expect("=");
      Blank();
      if (option == "flags" && Peek() == '"') {
        for (char flag : Literal()) {
          if (flag == 'i') {
            options.ignore_case = true;
          } else if (flag == 's') {
            options.dot_all = true;
          } else if (flag != 'u') {
            Unsupported(std::string("the flag '") + flag + "' is not supported", where);
          }
        }
      } else if (option == "json_string" && (Take("true") || Take("false"))) {
        json_string = text_[at_ - 2] == 'u';
      } else {
        Fail("unknown option '" + option + "'", where);
      }
      Blank();
    }
    Expect(")");
    ParseError error;
    NodeId node = ParseRegex(pattern, options, plain_, &error);
    if (!error.ok()) {
      const std::string what = "in the expression, at offset " + std::to_string(error.position) + ": " + error.message;
      if (error.unsupported) Unsupported(what, start);
      Fail(what, start);
    }
    if (json_string) {
      // Only what stands unescaped inside a JSON string.
      const CodePoints raw = Inverted({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}});
      node = pool_.And({node, pool_.Repeat(plain_.Class(raw), 0, kUnlimited)});
    }
    return RuleExpr::Text(node);
  }

  RuleExpr DispatchCall() {
    at_++;
    std::vector<Trigger> triggers;
    std::vector<std::string> excludes;
    bool loop = true;
    Blank();
    while (Peek() != ')') {
      const size_t where = at_;
      if (Take("(")) {
        Blank();
        if (Peek() != '"') Fail("expected a string");
        Trigger trigger{Literal(), {}};
        if (trigger.text.empty()) Fail("an empty tag", where);
        Expect(",");
        Blank();
        const size_t use = at_;
        const std::string rule = Name();
        if (rule.empty()) Fail("expected a rule name");
        first_use_.emplace(rule, use);
        trigger.body = RuleExpr::Reference(RuleOf(rule));
        Expect(")");
        triggers.push_back(std::move(trigger));
      } else {
        const std::string option = Name();
        Expect("=");
        Blank();
        if (option == "loop_after_dispatch" && (Take("true") || Take("false"))) {
          loop = text_[at_ - 2] == 'u';
        } else if (option == "excludes" && Take("(")) {
          Blank();
          while (Peek() != ')') {
            if (Peek() != '"') Fail("expected a string");
            excludes.push_back(Literal());
            if (excludes.back().empty()) Fail("an empty string to exclude", where);
            Blank();
            if (!Take(",")) break;
            Blank();
          }
          Expect(")");
        } else {
          Fail("unknown option '" + option + "'", where);
        }
      }
      Blank();
      if (!Take(",")) break;
      Blank();
    }
    Expect(")");
    return Dispatch(front_.grammar, *rules_, triggers, excludes, loop, false);
  }

  FrontEnd& front_;
  RegexPool& pool_;
  std::string_view text_;
  CharEncoder plain_;
  std::shared_ptr<RuleSet> rules_;
  std::map<std::string, uint32_t> names_;
  std::map<std::string, size_t> first_use_;
  size_t at_ = 0;
};

}  // namespace

Symbol EbnfSymbol(FrontEnd& front, std::string_view text, std::string_view root) {
  return EbnfParser(front, text).Parse(root);
}

Symbol GrammarSymbol(FrontEnd& front, std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    throw SchemaError("INVALID_REQUEST", "", "the grammar is blank");
  // EBNF when any line, comments aside, holds "::=".
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    line = line.substr(0, std::min(line.find('#'), line.find("//")));
    if (line.find("::=") != std::string_view::npos) return EbnfSymbol(front, text, "root");
    at = end + 1;
  }
  return LarkSymbol(front, text, 0);
}

}  // namespace onpolicy::grammar
