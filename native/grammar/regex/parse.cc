// Builds the expression of a tree from right to left. Anchors and look-aheads become intersections.
#include "grammar/regex/parse.h"

#include <algorithm>
#include <iterator>

#include "grammar/regex/tree.h"

namespace onpolicy::grammar {

namespace {

class Builder {
 public:
  Builder(CharEncoder& encoder) : encoder_(encoder), pool_(encoder.pool()) {}

  using List = std::vector<RegexTreePtr>;

  NodeId Plain(const RegexTree& tree) {
    switch (tree.kind) {
      case RegexTree::kClass:
        return encoder_.Class(tree.ranges);
      case RegexTree::kConcat: {
        NodeId node = kEpsilon;
        for (size_t i = tree.parts.size(); i-- > 0;) node = pool_.Concat(Plain(*tree.parts[i]), node);
        return node;
      }
      case RegexTree::kAlternate: {
        std::vector<NodeId> options;
        for (const RegexTreePtr& part : tree.parts) options.push_back(Plain(*part));
        return pool_.Alternate(std::move(options));
      }
      case RegexTree::kRepeat:
        return pool_.Repeat(Plain(*tree.parts[0]), tree.min, tree.max);
      default:
        return kEpsilon;
    }
  }

  // Distributes alternatives that contain anchors, so that each list is a plain run of items.
  void Expand(const RegexTreePtr& tree, std::vector<List>* lists) {
    if (!tree->zero_width || tree->kind == RegexTree::kStart || tree->kind == RegexTree::kEnd || tree->kind == RegexTree::kLook ||
        tree->kind == RegexTree::kBoundary) {
      for (List& list : *lists) list.push_back(tree);
    } else if (tree->kind == RegexTree::kConcat) {
      for (const RegexTreePtr& part : tree->parts) Expand(part, lists);
    } else if (tree->kind == RegexTree::kAlternate) {
      std::vector<List> result;
      for (const RegexTreePtr& part : tree->parts) {
        std::vector<List> branch = *lists;
        Expand(part, &branch);
        result.insert(result.end(), branch.begin(), branch.end());
      }
      *lists = std::move(result);
    } else if (tree->kind == RegexTree::kRepeat) {
      ExpandRepeat(*tree, lists);
    }
    if (lists->size() > limits::kAnchorLists) {
      too_large_ = true;
      lists->resize(1);
    }
  }

  // Returns the texts of which a prefix matches `tree`, followed by `tail`. `open_start`: the match may begin anywhere.
  NodeId Language(const RegexTreePtr& tree, NodeId tail, bool open_start) {
    std::vector<List> lists(1);
    Expand(tree, &lists);
    std::vector<NodeId> options;
    for (const List& list : lists) options.push_back(OfList(list, tail, open_start));
    return pool_.Alternate(std::move(options));
  }

  bool too_large() const { return too_large_; }
  bool has_mixed_context() const { return has_mixed_context_; }

 private:
  // An iteration that begins with "start" can only be the first one, and an iteration that ends with "end" only the last one.
  void ExpandRepeat(const RegexTree& tree, std::vector<List>* lists) {
    std::vector<List> inner(1), plain, both;
    Expand(tree.parts[0], &inner);
    std::vector<std::pair<List, uint32_t>> starts{{{}, 0}}, lasts{{{}, 0}};  // with their number of iterations
    for (List& list : inner) {
      const auto has = [&](RegexTree::Kind kind) {
        return std::any_of(list.begin(), list.end(), [&](const RegexTreePtr& item) { return item->kind == kind; });
      };
      const bool has_start = has(RegexTree::kStart), has_end = has(RegexTree::kEnd);
      if (has_start && has_end) both.push_back(list);
      if (has_start && !has_end) starts.push_back({list, 1});
      if (!has_start && has_end) lasts.push_back({list, 1});
      if (!has_start && !has_end) plain.push_back(list);
    }
    std::vector<List> options;
    if (tree.min <= 1)
      for (const List& list : both) options.push_back(list);
    for (const auto& [first, before] : starts)
      for (const auto& [last, after] : lasts) {
        const uint32_t used = before + after;
        if (used > tree.max) continue;
        const uint32_t min = tree.min > used ? tree.min - used : 0, max = tree.max == kUnlimited ? kUnlimited : tree.max - used;
        if (plain.empty() && min > 0) continue;
        List option = first;
        if (!plain.empty() && max > 0) option.push_back(Repeated(plain, min, max));
        option.insert(option.end(), last.begin(), last.end());
        options.push_back(std::move(option));
      }
    std::vector<List> result;
    for (const List& list : *lists)
      for (const List& option : options) {
        result.push_back(list);
        result.back().insert(result.back().end(), option.begin(), option.end());
      }
    *lists = std::move(result);
  }

  // Makes a repetition of lists without anchors.
  static RegexTreePtr Repeated(std::vector<List> lists, uint32_t min, uint32_t max) {
    auto repeat = std::make_shared<RegexTree>(), choice = std::make_shared<RegexTree>();
    choice->kind = RegexTree::kAlternate;
    for (List& list : lists) {
      auto run = std::make_shared<RegexTree>();
      run->kind = RegexTree::kConcat;
      run->parts = std::move(list);
      choice->parts.push_back(std::move(run));
    }
    repeat->kind = RegexTree::kRepeat;
    repeat->min = min;
    repeat->max = max;
    repeat->parts = {std::move(choice)};
    return repeat;
  }

  NodeId OfList(const List& list, NodeId tail, bool open_start) {
    const auto boundary = std::find_if(list.rbegin(), list.rend(), [](const RegexTreePtr& item) { return item->kind == RegexTree::kBoundary; });
    return boundary == list.rend() ? OfRun(list.begin(), list.end(), tail, open_start)
                                   : AtBoundary(list, static_cast<size_t>(list.rend() - boundary) - 1, tail, open_start);
  }

  // A word boundary has a word character on exactly one side. Word characters are ASCII.
  NodeId AtBoundary(const List& list, size_t at, NodeId tail, bool open_start) {
    for (size_t i = 0; i < list.size(); i++) {
      const RegexTree::Kind kind = list[i]->kind;
      has_mixed_context_ = has_mixed_context_ || kind == RegexTree::kLook || (kind == RegexTree::kStart && i > at) || (kind == RegexTree::kEnd && i < at);
    }
    const NodeId word = encoder_.Class({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}), any = encoder_.AnyText();
    const NodeId begins = pool_.Concat(word, any), ends = pool_.Concat(any, word);
    const NodeId before = OfList(List(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(at)), kEpsilon, open_start);
    const NodeId after = OfRun(list.begin() + static_cast<std::ptrdiff_t>(at) + 1, list.end(), tail, false);
    const bool inside = list[at]->negative;
    const auto side = [&](NodeId node, NodeId of_word, bool is_word) {
      const NodeId both = pool_.And({node, is_word ? of_word : pool_.And({any, pool_.Not(of_word)})});
      return pool_.IsLive(both) ? both : kNothing;
    };
    return pool_.Alternate({pool_.Concat(side(before, ends, true), side(after, begins, inside)),
                            pool_.Concat(side(before, ends, false), side(after, begins, !inside))});
  }

  NodeId OfRun(List::const_iterator first, List::const_iterator last, NodeId tail, bool open_start) {
    const auto start = std::find_if(std::make_reverse_iterator(last), std::make_reverse_iterator(first),
                                    [](const RegexTreePtr& item) { return item->kind == RegexTree::kStart; });
    const bool anchored = start != std::make_reverse_iterator(first);
    NodeId node = tail;
    for (auto at = last; at != first;) {
      const RegexTree& item = **--at;
      if (item.kind == RegexTree::kStart) continue;
      if (item.kind == RegexTree::kEnd) {
        node = pool_.IsNullable(node) ? kEpsilon : kNothing;
      } else if (item.kind == RegexTree::kLook) {
        const NodeId look = Language(item.parts[0], encoder_.AnyText(), false);
        node = pool_.And({node, item.negative ? pool_.Not(look) : look});
      } else if (anchored && at < start.base() - 1) {
        if (!pool_.IsNullable(Plain(item))) node = kNothing;  // text before the beginning of the whole text
      } else {
        node = pool_.Concat(Plain(item), node);
      }
    }
    return open_start && !anchored ? pool_.Concat(encoder_.AnyText(), node) : node;
  }

  CharEncoder& encoder_;
  RegexPool& pool_;
  bool too_large_ = false;
  bool has_mixed_context_ = false;  // a word boundary beside a look-ahead, or outside of an anchor
};

}  // namespace

NodeId ParseRegex(std::string_view pattern, const RegexOptions& options, CharEncoder& encoder) {
  // Replaces NUL characters by their escape, because the reader uses NUL as the end of the text.
  std::string escaped;
  for (char c : pattern) c == '\0' ? escaped += "\\x00" : escaped += c;
  const RegexTreePtr tree = ReadRegex(escaped, options);
  Builder builder(encoder);
  const NodeId node = builder.Language(tree, options.search ? encoder.AnyText() : kEpsilon, options.search);
  if (builder.has_mixed_context())
    throw ParseError{0, "a word boundary beside a look-ahead, or outside of an anchor, is not supported", true};
  if (builder.too_large()) throw ParseError{0, "too many alternatives with anchors", true};
  return node;
}

}  // namespace onpolicy::grammar
