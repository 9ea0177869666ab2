// The recursive-descent parser.
#include "grammar/regex-tree.h"

#include <algorithm>

namespace onpolicy::grammar {

namespace {

constexpr int kMaxDepth = 150;

CodePoints DigitClass() { return {{'0', '9'}}; }
CodePoints WordClass() { return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}; }
CodePoints SpaceClass() {
  return {{9, 13}, {32, 32}, {0xA0, 0xA0}, {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
          {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
}

class Parser {
 public:
  Parser(std::string_view text, const RegexOptions& options) : text_(text), options_(options) {}

  RegexTreePtr Parse(ParseError* error) {
    RegexTreePtr tree = Alternation(0);
    if (error_.ok() && at_ < text_.size()) Fail("unmatched ')'");
    *error = error_;
    return tree;
  }

 private:
  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool Take(std::string_view prefix) {
    if (text_.substr(at_, prefix.size()) != prefix) return false;
    at_ += prefix.size();
    return true;
  }
  void Fail(std::string message, bool unsupported = false) {
    if (error_.ok()) error_ = {at_, std::move(message), unsupported};
  }

  RegexTreePtr Alternation(int depth) {
    auto tree = std::make_unique<RegexTree>();
    if (depth > kMaxDepth) {
      Fail("nested too deeply");
      return tree;
    }
    const bool ignore_case = options_.ignore_case, dot_all = options_.dot_all;
    std::vector<RegexTreePtr> options;
    do {
      options.push_back(Concatenation(depth));
    } while (error_.ok() && Take("|"));
    options_.ignore_case = ignore_case;
    options_.dot_all = dot_all;
    if (options.size() == 1) return std::move(options[0]);
    tree->kind = RegexTree::kAlternate;
    for (RegexTreePtr& option : options) tree->zero_width = tree->zero_width || option->zero_width;
    tree->parts = std::move(options);
    return tree;
  }

  RegexTreePtr Concatenation(int depth) {
    auto tree = std::make_unique<RegexTree>();
    tree->kind = RegexTree::kConcat;
    while (error_.ok() && !AtEnd() && Peek() != '|' && Peek() != ')') {
      RegexTreePtr item = Quantified(depth);
      if (!item) break;
      tree->zero_width = tree->zero_width || item->zero_width;
      tree->parts.push_back(std::move(item));
    }
    return tree;
  }

  RegexTreePtr Quantified(int depth) {
    RegexTreePtr item = Atom(depth);
    for (int count = 0; error_.ok() && item; count++) {
      uint32_t min = 0, max = kUnlimited;
      const size_t start = at_;
      if (Take("*")) {
      } else if (Take("+")) {
        min = 1;
      } else if (Take("?")) {
        max = 1;
      } else if (Peek() == '{') {
        if (!Counts(&min, &max)) break;
      } else {
        break;
      }
      if (!error_.ok()) break;
      if (count > 0) {
        at_ = start;
        Fail("nothing to repeat");
        break;
      }
      if (item->kind == RegexTree::kStart || item->kind == RegexTree::kEnd || item->kind == RegexTree::kLook || item->zero_width) {
        at_ = start;
        Fail("a quantifier after an anchor or look-ahead is not supported", true);
        break;
      }
      if (Peek() == '+') Fail("possessive quantifiers are not supported", true);
      Take("?");  // laziness changes which match is found, not which texts match
      auto repeat = std::make_unique<RegexTree>();
      repeat->kind = RegexTree::kRepeat;
      repeat->min = min;
      repeat->max = max;
      repeat->parts.push_back(std::move(item));
      item = std::move(repeat);
    }
    return item;
  }

  // {n}, {n,}, {n,m}; anything else that starts with a brace is a literal brace.
  bool Counts(uint32_t* min, uint32_t* max) {
    size_t at = at_ + 1;
    const auto number = [&](uint32_t* value) {
      const size_t begin = at;
      uint64_t sum = 0;
      for (; at < text_.size() && text_[at] >= '0' && text_[at] <= '9'; at++)
        sum = std::min<uint64_t>(sum * 10 + static_cast<uint64_t>(text_[at] - '0'), 1u << 30);
      *value = static_cast<uint32_t>(sum);
      return at > begin;
    };
    if (at < text_.size() && text_[at] == ',') {
      const size_t close = text_.find_first_not_of("0123456789", at + 1);
      if (close != std::string_view::npos && text_[close] == '}' && close > at + 1) {
        Fail("a repetition needs its lower count");
        return true;
      }
    }
    if (!number(min)) return false;
    *max = *min;
    if (at < text_.size() && text_[at] == ',') {
      at++;
      if (!number(max)) *max = kUnlimited;
    }
    if (at >= text_.size() || text_[at] != '}') return false;
    if (*max < *min) {
      Fail("the counts of a repetition are out of order");
      return true;
    }
    if (*min > 1000000 || (*max != kUnlimited && *max > 100000000)) Fail("a repetition count is too large");
    at_ = at + 1;
    return true;
  }

  RegexTreePtr Leaf(CodePoints ranges) {
    auto tree = std::make_unique<RegexTree>();
    tree->kind = RegexTree::kClass;
    ranges = Normalized(std::move(ranges));
    tree->ranges = options_.ignore_case ? WithBothCases(ranges) : std::move(ranges);
    return tree;
  }

  RegexTreePtr ZeroWidth(RegexTree::Kind kind) {
    auto tree = std::make_unique<RegexTree>();
    tree->kind = kind;
    tree->zero_width = true;
    return tree;
  }

  RegexTreePtr Atom(int depth) {
    const char c = Peek();
    switch (c) {
      case '^':
        at_++;
        return ZeroWidth(RegexTree::kStart);
      case '$':
        at_++;
        return ZeroWidth(RegexTree::kEnd);
      case '(':
        return Group(depth);
      case '[':
        return Leaf(Class());
      case '.':
        at_++;
        if (options_.dot_all) return Leaf({{0, kLastCodePoint}});
        return Leaf(Inverted({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}));
      case '*':
      case '+':
      case '?':
        Fail("nothing to repeat");
        return nullptr;
      case '\\':
        return EscapedAtom();
      default:
        if (c == '{') {
          uint32_t min, max;
          const size_t start = at_;
          if (Counts(&min, &max)) {
            at_ = start;
            Fail("nothing to repeat");
            return nullptr;
          }
        }
        const uint32_t code = ReadCodePoint(text_, &at_);
        return Leaf({{code, code}});
    }
  }

  RegexTreePtr Group(int depth) {
    const size_t open = at_;
    at_++;
    const bool ignore_case = options_.ignore_case, dot_all = options_.dot_all;
    bool look = false, negative = false;
    if (Take("?:")) {
    } else if (Peek() == '?' && (Peek(1) == '=' || Peek(1) == '!')) {
      if (!options_.allow_lookahead) {
        Fail("look-ahead is not supported", true);
        return nullptr;
      }
      look = true;
      negative = Peek(1) == '!';
      at_ += 2;
    } else if (Peek() == '?' && Peek(1) == '<' && (Peek(2) == '=' || Peek(2) == '!')) {
      Fail("look-behind is not supported", true);
      return nullptr;
    } else if (Take("?<") || Take("?P<")) {
      const size_t begin = at_;
      while (!AtEnd() && Peek() != '>') at_++;
      if (AtEnd() || at_ == begin) {
        Fail("invalid group name");
        return nullptr;
      }
      at_++;
    } else if (Peek() == '?') {
      at_++;
      bool on = true, any = false;
      for (; !AtEnd() && Peek() != ')' && Peek() != ':'; at_++) {
        any = true;
        if (Peek() == '-') {
          on = false;
        } else if (Peek() == 'i') {
          options_.ignore_case = on;
        } else if (Peek() == 's') {
          options_.dot_all = on;
        } else if (Peek() != 'u') {
          Fail("unknown group or flag");
          return nullptr;
        }
      }
      if (!any) {
        Fail("invalid group");
        return nullptr;
      }
      if (Take(")")) return std::make_unique<RegexTree>();  // holds until the enclosing group ends
      at_++;
    }
    RegexTreePtr tree = Alternation(depth + 1);
    options_.ignore_case = ignore_case;
    options_.dot_all = dot_all;
    if (error_.ok() && !Take(")")) {
      at_ = open;
      Fail("unclosed group");
    }
    if (!look) return tree;
    RegexTreePtr result = ZeroWidth(RegexTree::kLook);
    result->negative = negative;
    result->parts.push_back(std::move(tree));
    return result;
  }

  RegexTreePtr EscapedAtom() {
    const char c = Peek(1);
    if (c == 'b' || c == 'B') {
      Fail("word boundaries are not supported", true);
      return nullptr;
    }
    if (c == 'A' || c == 'z') {
      at_ += 2;
      return ZeroWidth(c == 'A' ? RegexTree::kStart : RegexTree::kEnd);
    }
    if ((c >= '1' && c <= '9') || c == 'k') {
      Fail("backreferences are not supported", true);
      return nullptr;
    }
    CodePoints ranges;
    Escape(false, &ranges);
    return Leaf(std::move(ranges));
  }

  uint32_t HexDigits(size_t count) {
    uint32_t value = 0;
    for (size_t i = 0; i < count; i++) {
      const char c = Peek();
      const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
      if (digit < 0) {
        Fail("invalid hexadecimal escape");
        return 0;
      }
      value = value * 16 + static_cast<uint32_t>(digit);
      at_++;
    }
    return value;
  }

  // Reads an escape. Returns true when it stands for one character, which may then begin a range.
  bool Escape(bool in_class, CodePoints* ranges) {
    at_++;
    if (AtEnd()) {
      Fail("a backslash at the end");
      return false;
    }
    const char c = Peek();
    const auto one = [&](uint32_t code) {
      at_++;
      ranges->push_back({code, code});
      return true;
    };
    const auto many = [&](CodePoints set, bool inverted) {
      at_++;
      if (inverted) set = Inverted(set);
      ranges->insert(ranges->end(), set.begin(), set.end());
      return false;
    };
    switch (c) {
      case 'n': return one('\n');
      case 'r': return one('\r');
      case 't': return one('\t');
      case 'f': return one('\f');
      case 'v': return one('\v');
      case '0':
        if (Peek(1) >= '0' && Peek(1) <= '9') Fail("octal escapes are not supported", true);
        return one(0);
      case 'd': return many(DigitClass(), false);
      case 'D': return many(DigitClass(), true);
      case 'w': return many(WordClass(), false);
      case 'W': return many(WordClass(), true);
      case 's': return many(SpaceClass(), false);
      case 'S': return many(SpaceClass(), true);
      case 'b':
        if (in_class) return one('\b');
        break;
      case 'c':
        if ((Peek(1) >= 'a' && Peek(1) <= 'z') || (Peek(1) >= 'A' && Peek(1) <= 'Z')) {
          at_++;
          return one(static_cast<uint32_t>(Peek()) % 32);
        }
        break;
      case 'p':
      case 'P': {
        at_++;
        std::string name;
        if (Take("{")) {
          while (!AtEnd() && Peek() != '}') name.push_back(text_[at_++]);
          if (!Take("}")) Fail("unclosed property name");
        } else if (!AtEnd()) {
          name.push_back(text_[at_++]);
        }
        bool inverted = c == 'P';
        if (!name.empty() && name[0] == '^') {
          inverted = !inverted;
          name.erase(0, 1);
        }
        std::optional<CodePoints> set = UnicodeClass(name);
        if (!set) {
          Fail("unknown Unicode property '" + name + "'", true);
          return false;
        }
        at_--;
        return many(std::move(*set), inverted);
      }
      case 'x': {
        at_++;
        uint32_t code = 0;
        if (Peek() == '{') {
          code = Braced();
        } else {
          code = HexDigits(2);
        }
        ranges->push_back({code, code});
        return true;
      }
      case 'u': {
        at_++;
        uint32_t code = 0;
        if (Peek() == '{') {
          code = Braced();
        } else {
          code = HexDigits(4);
          if (code >= 0xD800 && code < 0xDC00 && Peek() == '\\' && Peek(1) == 'u') {
            at_ += 2;
            const uint32_t low = HexDigits(4);
            if (low < 0xDC00 || low > 0xDFFF) Fail("unpaired surrogate");
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
          }
        }
        ranges->push_back({code, code});
        return true;
      }
      default:
        break;
    }
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) {
      Fail(std::string("unknown escape '\\") + c + "'");
      return false;
    }
    const uint32_t code = ReadCodePoint(text_, &at_);
    ranges->push_back({code, code});
    return true;
  }

  uint32_t Braced() {
    at_++;
    uint32_t value = 0;
    size_t digits = 0;
    for (; !AtEnd() && Peek() != '}' && error_.ok(); digits++) {
      const uint32_t digit = HexDigits(1);
      value = std::min<uint32_t>(value * 16 + digit, 0x110000);
    }
    if (!Take("}") || digits == 0 || value > kLastCodePoint) Fail("invalid code point escape");
    return value;
  }

  CodePoints Class() {
    const size_t open = at_;
    at_++;
    const bool inverted = Take("^");
    CodePoints ranges;
    if (Peek() == ']' && !inverted) {
      Fail("empty character class");
      return ranges;
    }
    while (error_.ok() && Peek() != ']') {
      if (AtEnd()) {
        at_ = open;
        Fail("unclosed character class");
        return ranges;
      }
      const size_t item = at_;
      if (Peek() == '[' && Peek(1) == ':') {
        Fail("POSIX classes are not supported", true);
        return ranges;
      }
      bool single = true;
      if (Peek() == '\\') {
        single = Escape(true, &ranges);
      } else {
        const uint32_t code = ReadCodePoint(text_, &at_);
        ranges.push_back({code, code});
      }
      if (!error_.ok() || Peek() != '-' || Peek(1) == ']' || Peek(1) == '\0') continue;
      if (!single) continue;  // a hyphen after a class such as \w stands for itself
      at_++;
      const uint32_t low = ranges.back().first;
      ranges.pop_back();
      CodePoints end;
      bool end_single = true;
      if (Peek() == '\\') {
        end_single = Escape(true, &end);
      } else {
        const uint32_t code = ReadCodePoint(text_, &at_);
        end.push_back({code, code});
      }
      if (!error_.ok()) break;
      if (!end_single) {
        ranges.push_back({low, low});
        ranges.push_back({'-', '-'});
        ranges.insert(ranges.end(), end.begin(), end.end());
      } else if (end.back().first < low) {
        at_ = item;
        Fail("character range out of order");
      } else {
        ranges.push_back({low, end.back().first});
      }
    }
    at_++;
    ranges = Normalized(std::move(ranges));
    if (options_.ignore_case) ranges = WithBothCases(ranges);
    return inverted ? Inverted(ranges) : ranges;
  }

  std::string_view text_;
  RegexOptions options_;
  size_t at_ = 0;
  ParseError error_;
};

}  // namespace

RegexTreePtr ReadRegex(std::string_view pattern, const RegexOptions& options, ParseError* error) {
  return Parser(pattern, options).Parse(error);
}

}  // namespace onpolicy::grammar
