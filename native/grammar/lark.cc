// Lark text -> rules: rules and terminals, `common` imports, %ignore, lazy and suffixed rules, embedded JSON Schemas,
// nested grammars and token literals. A text matches when some reading of it does; terminals do not compete by length.
#include <algorithm>
#include <map>
#include <set>

#include "grammar/char-class.h"
#include "grammar/front-ends.h"
#include "grammar/regex-parse.h"
#include "grammar/schema-error.h"
#include "grammar/text-tools.h"

namespace onpolicy::grammar {

namespace {

constexpr int kMaxDepth = 100;

// Terminals of the module `common`, as regular expressions.
const std::map<std::string, std::string, std::less<>>& CommonTerminals() {
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

class LarkParser {
 public:
  LarkParser(FrontEnd& front, std::string_view text, int depth)
      : front_(front), pool_(front.grammar.regex()), text_(text), depth_(depth), plain_(pool_, TextForm::kPlain),
        rules_(std::make_shared<RuleSet>(front.grammar)) {}

  Symbol Parse() {
    if (depth_ > 8) Fail("nested too deeply");
    FindIgnores();
    at_ = 0;
    Blank();
    while (!AtEnd()) {
      Statement();
      Blank();
    }
    for (const auto& [name, use] : first_use_)
      if (!rules_->IsDefined(names_[name])) Fail("'" + name + "' is not defined", use);
    for (const auto& [rule, where] : terminal_rules_) {
      NodeId node;
      if (!rules_->AsText(RuleExpr::Reference(rule), &node)) Fail("a terminal must not refer to itself or to rules", where);
    }
    for (const LazyRule& lazy : lazy_rules_) FinishLazy(lazy);
    for (const auto& [rule, where] : plain_rules_) GuardTails(&rules_->Body(rule));
    const auto start = names_.find("start");
    if (start == names_.end()) Fail("there is no rule 'start'", 0);
    const uint32_t root = rules_->Add();
    RuleExpr body = RuleExpr::Reference(start->second);
    if (initial_skip_ && has_ignore_) body = RuleExpr::Sequence({Ignored(), body});
    rules_->Define(root, std::move(body));
    return rules_->Compile(root);
  }

 private:
  struct LazyRule {
    uint32_t rule;
    size_t where;
    bool shortest;     // lazy
    bool has_suffix;
    RuleExpr suffix;
  };

  [[noreturn]] void Fail(const std::string& what, size_t at) const {
    throw SchemaError("INVALID_REQUEST", LineAndColumn(text_, at), what);
  }
  [[noreturn]] void Fail(const std::string& what) const { Fail(what, at_); }
  [[noreturn]] void Unsupported(const std::string& what, size_t at) const {
    throw SchemaError("UNSUPPORTED", LineAndColumn(text_, at), what);
  }
  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool Take(std::string_view prefix) {
    if (text_.substr(at_, prefix.size()) != prefix) return false;
    at_ += prefix.size();
    return true;
  }
  void InlineBlank() {
    while (Peek() == ' ' || Peek() == '\t' || (Peek() == '\\' && Peek(1) == '\n')) at_ += Peek() == '\\' ? 2 : 1;
  }
  void Blank() {
    while (!AtEnd()) {
      const char c = Peek();
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        at_++;
      } else if (c == '#' || (c == '/' && Peek(1) == '/')) {
        while (!AtEnd() && Peek() != '\n') at_++;
      } else {
        return;
      }
    }
  }
  static bool IsNameChar(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  std::string Name() {
    const size_t begin = at_;
    while (IsNameChar(Peek()) || (at_ > begin && Peek() == '-' && IsNameChar(Peek(1)))) at_++;
    return std::string(text_.substr(begin, at_ - begin));
  }
  static bool IsTerminalName(const std::string& name) {
    for (char c : name)
      if (c != '_') return c >= 'A' && c <= 'Z';
    return false;
  }

  // Whether a statement begins here: a directive, or a name with what may stand before its colon.
  bool AtStatement() {
    const size_t saved = at_;
    bool result = false;
    if (Peek() == '%') {
      const size_t begin = ++at_;
      const std::string name(text_.substr(begin, text_.find_first_of(" \t\r\n{", begin) - begin));
      result = name == "import" || name == "ignore" || name == "declare" || name == "override" || name == "extend" ||
               name == "grammar_options";
    } else {
      while (Peek() == '?' || Peek() == '!') at_++;
      if (!Name().empty()) {
        if (Peek() == '[') {
          while (!AtEnd() && Peek() != ']' && Peek() != '\n') at_ += Peek() == '"' ? SkipString() : 1;
          at_++;
        }
        if (Peek() == '.' && Peek(1) >= '0' && Peek(1) <= '9')
          while (Peek() == '.' || (Peek() >= '0' && Peek() <= '9')) at_++;
        if (Peek() == '{')
          while (!AtEnd() && Peek() != '\n' && Peek(-1) != '}') at_++;
        InlineBlank();
        result = Peek() == ':';
      }
    }
    at_ = saved;
    return result;
  }
  size_t SkipString() const {
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    return end + 1 - at_;
  }

  uint32_t RuleOf(const std::string& name) {
    auto [it, is_new] = names_.emplace(name, 0);
    if (is_new) it->second = rules_->Add();
    return it->second;
  }

  // %ignore acts on rules above it too, so it is looked for first.
  void FindIgnores() {
    for (size_t line = 0; line < text_.size();) {
      const size_t first = text_.find_first_not_of(" \t", line);
      if (first != std::string_view::npos && text_.substr(first, 7) == "%ignore") has_ignore_ = true;
      const size_t end = text_.find('\n', line);
      line = end == std::string_view::npos ? text_.size() : end + 1;
    }
    if (has_ignore_) ignore_rule_ = rules_->Add();
  }
  RuleExpr Ignored() { return RuleExpr::Repeat(RuleExpr::Reference(ignore_rule_), 0, kUnlimited); }
  // A token of a rule, with what may be skipped after it.
  RuleExpr Lexeme(RuleExpr expr) {
    if (!has_ignore_ || in_terminal_) return expr;
    return RuleExpr::Sequence({std::move(expr), Ignored()});
  }

  void Statement() {
    if (Peek() == '%') return Directive();
    const size_t start = at_;
    while (Peek() == '?' || Peek() == '!') at_++;
    const std::string name = Name();
    if (name.empty()) Fail("expected a rule, a terminal or a directive");
    const bool is_terminal = IsTerminalName(name);
    LazyRule lazy{0, start, false, false, {}};
    if (Peek() == '[') Attributes(is_terminal, &lazy);
    if (Peek() == '.') Unsupported("priorities are not supported", at_);
    if (Peek() == '{') Unsupported("templates are not supported", at_);
    InlineBlank();
    if (Peek() == ':' && Peek(1) == ':') Unsupported("parametric rules are not supported", at_);
    if (!Take(":")) Fail("expected ':'");
    const uint32_t rule = RuleOf(name);
    if (rules_->IsDefined(rule)) Fail("'" + name + "' is defined twice", start);
    in_terminal_ = is_terminal || lazy.shortest || lazy.has_suffix;
    in_named_terminal_ = is_terminal;
    lazy_body_ = lazy.shortest || lazy.has_suffix;
    RuleExpr body = Alternatives(0);
    in_terminal_ = in_named_terminal_ = lazy_body_ = false;
    Blank();
    if (!AtEnd() && !AtStatement()) Fail("unexpected character");
    rules_->Define(rule, std::move(body));
    lazy.rule = rule;
    if (lazy.shortest || lazy.has_suffix) {
      lazy_rules_.push_back(std::move(lazy));
      lazy_set_.insert(rule);
    } else if (is_terminal) {
      terminal_rules_.push_back({rule, start});
    } else {
      plain_rules_.push_back({rule, start});
    }
  }

  static bool IsPlainName(const std::string& name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), IsNameChar);
  }

  void Attributes(bool is_terminal, LazyRule* lazy) {
    const size_t open = at_++;
    if (is_terminal) Fail("terminals take no attributes", open);
    std::set<std::string> seen;
    bool captures_stop = false;
    do {
      Blank();
      const size_t where = at_;
      const std::string name = Name();
      if (!seen.insert(name).second) Fail("the attribute '" + name + "' is given twice", where);
      Blank();
      const bool has_value = Take("=");
      Blank();
      if (name == "lazy" && !has_value) {
        lazy->shortest = true;
      } else if (name == "capture" && !has_value) {
      } else if ((name == "capture" || name == "stop_capture") && Peek() == '"') {
        bool ignore_case = false;
        if (!IsPlainName(String(&ignore_case))) Fail("invalid capture name", where);
        captures_stop = captures_stop || name == "stop_capture";
      } else if ((name == "suffix" || name == "stop") && has_value) {
        if (lazy->has_suffix) Fail("only one of suffix and stop can be given", where);
        lazy->has_suffix = true;
        if (Peek() == '"') {
          bool ignore_case = false;
          const std::string text = String(&ignore_case);
          if (text.empty()) Fail("an empty " + name, where);
          lazy->suffix = RuleExpr::Text(Literal(text, ignore_case, where));
        } else if (Peek() == '/') {
          lazy->suffix = RuleExpr::Text(Regex());
        } else {
          const std::string terminal = Name();
          if (!IsTerminalName(terminal)) Fail("expected a string, an expression or a terminal", where);
          first_use_.emplace(terminal, where);
          lazy->suffix = RuleExpr::Reference(RuleOf(terminal));
        }
      } else {
        Unsupported("the rule attribute '" + name + "' is not supported", where);
      }
      Blank();
    } while (Take(","));
    if (!Take("]")) Fail("expected ']'");
    if (captures_stop && !lazy->has_suffix) Fail("stop_capture needs a suffix or stop", open);
  }

  void FinishLazy(const LazyRule& lazy) {
    NodeId node, suffix = kEpsilon;
    if (!rules_->AsText(rules_->Body(lazy.rule), &node) || (lazy.has_suffix && !rules_->AsText(lazy.suffix, &suffix)))
      Unsupported("a lazy or suffixed rule must hold only terminals", lazy.where);
    const NodeId text = Shortest(pool_, pool_.Concat(node, suffix));
    lazy_text_[lazy.rule] = text;
    RuleExpr body = RuleExpr::Text(text);
    if (has_ignore_) body = RuleExpr::Sequence({std::move(body), Ignored()});
    rules_->Body(lazy.rule) = std::move(body);
  }

  // In `x* tail`, text that begins an `x` with a lazy head belongs to the loop: the tail does not hold it.
  void LazyHeads(const RuleExpr& expr, std::set<uint32_t>* visited, std::vector<NodeId>* heads) {
    if (expr.kind == RuleExpr::kReference) {
      if (auto it = lazy_text_.find(expr.rule); it != lazy_text_.end()) {
        heads->push_back(it->second);
      } else if (visited->insert(expr.rule).second) {
        LazyHeads(rules_->Body(expr.rule), visited, heads);
      }
    } else if (expr.kind == RuleExpr::kChoice) {
      for (const RuleExpr& part : expr.parts) LazyHeads(part, visited, heads);
    } else if (!expr.parts.empty()) {
      LazyHeads(expr.parts[0], visited, heads);
    }
  }
  void GuardTails(RuleExpr* expr) {
    for (RuleExpr& part : expr->parts) GuardTails(&part);
    if (expr->kind != RuleExpr::kSequence) return;
    for (size_t i = 0; i + 1 < expr->parts.size(); i++) {
      if (expr->parts[i].kind != RuleExpr::kRepeat || expr->parts[i].max != kUnlimited) continue;
      std::vector<NodeId> heads;
      std::set<uint32_t> visited;
      LazyHeads(expr->parts[i].parts[0], &visited, &heads);
      NodeId tail;
      if (heads.empty() || !rules_->AsText(expr->parts[i + 1], &tail)) continue;
      const NodeId taken = pool_.Concat(pool_.Alternate(std::move(heads)), kAnyText);
      expr->parts[i + 1] = RuleExpr::Text(pool_.And({tail, pool_.Not(taken)}));
    }
  }

  void Directive() {
    const size_t start = at_;
    if (Take("%import")) {
      InlineBlank();
      std::string module = Name();
      if (module != "common") Unsupported("only the module 'common' can be imported", start);
      InlineBlank();
      if (Take("(")) {
        do {
          Blank();
          const std::string name = Name();
          Import(name, name, start);
          Blank();
        } while (Take(","));
        if (!Take(")")) Fail("expected ')'");
        return;
      }
      if (!Take(".")) Fail("expected '.'");
      const std::string name = Name();
      InlineBlank();
      std::string alias = name;
      if (Take("->")) {
        InlineBlank();
        alias = Name();
      }
      return Import(name, alias, start);
    }
    if (Take("%ignore")) {
      InlineBlank();
      in_terminal_ = true;
      RuleExpr body = Alternatives(0);
      in_terminal_ = false;
      ignores_.push_back(std::move(body));
      rules_->Define(ignore_rule_, RuleExpr::Choice(ignores_));
      return;
    }
    if (Take("%grammar_options")) {
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
      return;
    }
    Unsupported("this directive is not supported", start);
  }

  void Import(const std::string& name, const std::string& alias, size_t where) {
    const auto it = CommonTerminals().find(name);
    if (it == CommonTerminals().end()) Fail("'common' has no terminal '" + name + "'", where);
    if (!IsTerminalName(alias)) Fail("expected a terminal name", where);
    const uint32_t rule = RuleOf(alias);
    if (rules_->IsDefined(rule)) Fail("'" + alias + "' is defined twice", where);
    ParseError error;
    rules_->Define(rule, RuleExpr::Text(ParseRegex(it->second, {}, plain_, &error)));
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
    if (parts.size() == 1) return std::move(parts[0]);
    return RuleExpr::Sequence(std::move(parts));
  }

  uint32_t Number() {
    if (Peek() < '0' || Peek() > '9') Fail("expected a number");
    uint64_t value = 0;
    for (; Peek() >= '0' && Peek() <= '9'; at_++) value = std::min<uint64_t>(value * 10 + static_cast<uint64_t>(Peek() - '0'), 1u << 31);
    if (value > 100000000) Fail("the number is too large");
    return static_cast<uint32_t>(value);
  }

  void Quantify(RuleExpr* item) {
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

  RuleExpr Item(int depth) {
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

  // "..." with JSON's escapes and \xHH, and the flag i.
  std::string String(bool* ignore_case) {
    const size_t start = at_;
    const size_t length = SkipString();
    if (start + length > text_.size()) Fail("unterminated string", start);
    std::string body(text_.substr(start, length));
    if (body.find('\n') != std::string::npos) Fail("unterminated string", start);
    for (size_t i = 0; i + 3 < body.size(); i++) {
      if (body[i] != '\\') continue;
      if (body[i + 1] == 'x') body.replace(i, 2, "\\u00");
      if (body[i + 1] == '\'') body.erase(i, 1);
      i++;
    }
    JsonError error;
    const JsonValue value = ParseJson(body, &error);
    if (!error.message.empty()) Fail("in the string: " + error.message, start);
    at_ += length;
    while (Peek() == 'i') {
      *ignore_case = true;
      at_++;
    }
    if (IsNameChar(Peek())) Fail("unknown flag");
    return value.text;
  }

  NodeId Literal(const std::string& text, bool ignore_case, size_t where) {
    if (!ignore_case) return pool_.Literal(text);
    std::vector<NodeId> parts;
    NodeId node = kEpsilon;
    for (size_t i = text.size(); i-- > 0;) {
      const uint8_t byte = static_cast<uint8_t>(text[i]);
      if (byte >= 0x80) Unsupported("the flag i is supported for ASCII only", where);
      node = pool_.Concat(plain_.Class(WithBothCases({{byte, byte}}).size() > 1 && std::isalpha(byte)
                                           ? Normalized({{byte | 0x20u, byte | 0x20u}, {byte & ~0x20u, byte & ~0x20u}})
                                           : CodePoints{{byte, byte}}),
                          node);
    }
    return node;
  }

  RuleExpr Quoted() {
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
    return RuleExpr::Text(plain_.Class({{low, high}}));
  }

  NodeId Regex() {
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
    const NodeId node = ParseRegex(pattern, options, plain_, &error);
    if (!error.ok()) {
      if (error.unsupported) Unsupported(error.message, start + 1 + error.position);
      Fail(error.message, start + 1 + error.position);
    }
    return node;
  }

  // A JSON value in the text.
  JsonValue Json() {
    Blank();
    const size_t start = at_;
    size_t depth = 0;
    while (!AtEnd()) {
      if (Peek() == '"') {
        at_ += SkipString();
        continue;
      }
      if (Peek() == '{' || Peek() == '[') depth++;
      if ((Peek() == '}' || Peek() == ']') && --depth == 0) {
        at_++;
        break;
      }
      if (depth == 0 && (Peek() == '\n' || Peek() == ' ')) break;
      at_++;
    }
    JsonError error;
    JsonValue value = ParseJson(text_.substr(start, std::min(at_, text_.size()) - start), &error);
    if (!error.message.empty()) Fail("the value is not JSON: " + error.message, start + error.position);
    return value;
  }

  RuleExpr Embedded() {
    const size_t start = at_;
    if (in_named_terminal_ && !(text_.substr(at_, 6) == "%regex")) Fail("a terminal cannot hold this", start);
    if (Take("%json")) {
      JsonValue schema = Json();
      try {
        return Lexeme(RuleExpr::Of(SchemaSymbol(front_, std::move(schema), front_.schema)));
      } catch (const SchemaError& error) {
        throw SchemaError(error.code(), LineAndColumn(text_, start), error.what());
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
        return Lexeme(RuleExpr::Of(LarkSymbol(front_, inner, depth_ + 1)));
      } catch (const SchemaError& error) {
        throw SchemaError(error.code(), LineAndColumn(text_, open), error.what());
      }
    }
    Unsupported("this directive is not supported", start);
  }

  // <name>, <[1,3-5]>, <[^1]>, <[*]>.
  RuleExpr Tokens() {
    const size_t start = at_;
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

  FrontEnd& front_;
  RegexPool& pool_;
  std::string_view text_;
  int depth_;
  CharEncoder plain_;
  std::shared_ptr<RuleSet> rules_;
  std::map<std::string, uint32_t> names_;
  std::map<std::string, size_t> first_use_;
  std::vector<std::pair<uint32_t, size_t>> terminal_rules_, plain_rules_;
  std::vector<LazyRule> lazy_rules_;
  std::set<uint32_t> lazy_set_;
  std::map<uint32_t, NodeId> lazy_text_;
  std::vector<RuleExpr> ignores_;
  uint32_t ignore_rule_ = 0;
  bool has_ignore_ = false, initial_skip_ = false;
  bool in_terminal_ = false, in_named_terminal_ = false, lazy_body_ = false;
  size_t at_ = 0;
};

}  // namespace

Symbol LarkSymbol(FrontEnd& front, std::string_view text, int depth) { return LarkParser(front, text, depth).Parse(); }

}  // namespace onpolicy::grammar
