// The recursive-descent parser.
#include "grammar/regex/tree.h"

#include <algorithm>

#include "base/utf8.h"
#include "grammar/regex/text.h"

namespace onpolicy::grammar {

namespace {

class Parser : private RegexText {
 public:
  Parser(std::string_view text, const RegexOptions& options) : RegexText(text, options) {}

  RegexTreePtr Parse() {
    RegexTreePtr tree = Alternation(0);
    if (at_ < text_.size()) Fail("unmatched ')'");
    return tree;
  }

 private:
  RegexTreePtr Alternation(int depth) {
    if (depth > limits::kRegexDepth) Fail("nested too deeply");
    auto tree = std::make_shared<RegexTree>();
    const RegexOptions outer = options_;
    std::vector<RegexTreePtr> options;
    do {
      options.push_back(Concatenation(depth));
    } while (Take("|"));
    options_ = outer;
    if (options.size() == 1) return std::move(options[0]);
    tree->kind = RegexTree::kAlternate;
    for (RegexTreePtr& option : options) tree->zero_width = tree->zero_width || option->zero_width;
    tree->parts = std::move(options);
    return tree;
  }

  RegexTreePtr Concatenation(int depth) {
    auto tree = std::make_shared<RegexTree>();
    tree->kind = RegexTree::kConcat;
    while (!AtEnd() && Peek() != '|' && Peek() != ')') {
      RegexTreePtr item = Quantified(depth);
      tree->zero_width = tree->zero_width || item->zero_width;
      tree->parts.push_back(std::move(item));
    }
    return tree;
  }

  // Returns true if a tree contains a look-ahead or a word boundary.
  static bool HasContext(const RegexTree& tree) {
    if (tree.kind == RegexTree::kLook || tree.kind == RegexTree::kBoundary) return true;
    return tree.zero_width && std::any_of(tree.parts.begin(), tree.parts.end(), [](const RegexTreePtr& part) { return HasContext(*part); });
  }

  RegexTreePtr Quantified(int depth) {
    RegexTreePtr item = Atom(depth);
    for (int count = 0;; count++) {
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
      if (count > 0) FailAt(start, "nothing to repeat");
      if (HasContext(*item)) FailAt(start, "a quantifier after a look-ahead or a word boundary is not supported", true);
      if (Peek() == '+') Fail("possessive quantifiers are not supported", true);
      Take("?");  // laziness changes the match that is found, but not the texts that match
      auto repeat = std::make_shared<RegexTree>();
      repeat->kind = RegexTree::kRepeat;
      repeat->zero_width = item->zero_width;
      repeat->min = min;
      repeat->max = max;
      repeat->parts.push_back(std::move(item));
      item = std::move(repeat);
    }
    return item;
  }

  // Reads {n}, {n,} or {n,m}. Any other text that begins with a brace is literal.
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
      }
    }
    if (!number(min)) return false;
    *max = *min;
    if (at < text_.size() && text_[at] == ',') {
      at++;
      if (!number(max)) *max = kUnlimited;
    }
    if (at >= text_.size() || text_[at] != '}') return false;
    if (*max < *min) Fail("the counts of a repetition are out of order");
    if (*min > limits::kLowerCount || (*max != kUnlimited && *max > limits::kUpperCount)) Fail("a repetition count is too large");
    at_ = at + 1;
    return true;
  }

  RegexTreePtr Leaf(CodePoints ranges) {
    auto tree = std::make_shared<RegexTree>();
    tree->kind = RegexTree::kClass;
    ranges = Normalized(std::move(ranges));
    tree->ranges = options_.ignore_case ? WithBothCases(ranges) : std::move(ranges);
    return tree;
  }

  RegexTreePtr ZeroWidth(RegexTree::Kind kind) {
    auto tree = std::make_shared<RegexTree>();
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
      case '\\':
        return EscapedAtom();
      default:
        if (c == '{') {
          uint32_t min, max;
          const size_t start = at_;
          if (Counts(&min, &max)) FailAt(start, "nothing to repeat");
        }
        const uint32_t code = ReadCodePoint(text_, &at_);
        return Leaf({{code, code}});
    }
  }

  RegexTreePtr Group(int depth) {
    const size_t open = at_;
    at_++;
    const RegexOptions outer = options_;
    bool look = false, negative = false;
    if (Take("?:")) {
    } else if (Peek() == '?' && (Peek(1) == '=' || Peek(1) == '!')) {
      if (!options_.allow_lookahead) Fail("look-ahead is not supported", true);
      look = true;
      negative = Peek(1) == '!';
      at_ += 2;
    } else if (Peek() == '?' && Peek(1) == '<' && (Peek(2) == '=' || Peek(2) == '!')) {
      Fail("look-behind is not supported", true);
    } else if (Take("?<") || Take("?P<")) {
      const size_t begin = at_;
      while (!AtEnd() && Peek() != '>') at_++;
      if (AtEnd() || at_ == begin) Fail("invalid group name");
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
        }
      }
      if (!any) Fail("invalid group");
      if (Take(")")) return std::make_shared<RegexTree>();  // holds until the enclosing group ends
      at_++;
    }
    RegexTreePtr tree = Alternation(depth + 1);
    options_ = outer;
    if (!Take(")")) FailAt(open, "unclosed group");
    if (!look) return tree;
    RegexTreePtr result = ZeroWidth(RegexTree::kLook);
    result->negative = negative;
    result->parts.push_back(std::move(tree));
    return result;
  }

  RegexTreePtr EscapedAtom() {
    const char c = Peek(1);
    if (c == 'b' || c == 'B') {
      at_ += 2;
      RegexTreePtr boundary = ZeroWidth(RegexTree::kBoundary);
      boundary->negative = c == 'B';
      return boundary;
    }
    if (c == 'A' || c == 'z') {
      at_ += 2;
      return ZeroWidth(c == 'A' ? RegexTree::kStart : RegexTree::kEnd);
    }
    if ((c >= '1' && c <= '9') || c == 'k') Fail("backreferences are not supported", true);
    CodePoints ranges;
    Escape(false, &ranges);
    return Leaf(std::move(ranges));
  }
};

}  // namespace

RegexTreePtr ReadRegex(std::string_view pattern, const RegexOptions& options) { return Parser(pattern, options).Parse(); }

}  // namespace onpolicy::grammar
