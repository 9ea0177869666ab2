// A tree built from right to left, which gives anchors and look-aheads their meaning by intersection.
#include "regex/parse.h"

#include <algorithm>

#include "regex/tree.h"

namespace onpolicy::grammar {

namespace {

class Builder {
 public:
  Builder(CharEncoder& encoder) : encoder_(encoder), pool_(encoder.pool()) {}

  using List = std::vector<const RegexTree*>;

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
  void Expand(const RegexTree& tree, std::vector<List>* lists) {
    if (!tree.zero_width || tree.kind == RegexTree::kStart || tree.kind == RegexTree::kEnd || tree.kind == RegexTree::kLook) {
      for (List& list : *lists) list.push_back(&tree);
    } else if (tree.kind == RegexTree::kConcat) {
      for (const RegexTreePtr& part : tree.parts) Expand(*part, lists);
    } else if (tree.kind == RegexTree::kAlternate) {
      std::vector<List> result;
      for (const RegexTreePtr& part : tree.parts) {
        std::vector<List> branch = *lists;
        Expand(*part, &branch);
        result.insert(result.end(), branch.begin(), branch.end());
      }
      *lists = std::move(result);
    }
    if (lists->size() > limits::kAnchorLists) {
      too_large_ = true;
      lists->resize(1);
    }
  }

  // Texts of which a beginning matches `tree`, followed by `tail`. `open_start`: the match may begin anywhere.
  NodeId Language(const RegexTree& tree, NodeId tail, bool open_start) {
    std::vector<List> lists(1);
    Expand(tree, &lists);
    std::vector<NodeId> options;
    for (const List& list : lists) {
      size_t start = list.size();
      for (size_t i = 0; i < list.size(); i++)
        if (list[i]->kind == RegexTree::kStart) start = i;
      const bool anchored = start < list.size();
      NodeId node = tail;
      for (size_t i = list.size(); i-- > 0;) {
        const RegexTree& item = *list[i];
        if (item.kind == RegexTree::kStart) continue;
        if (item.kind == RegexTree::kEnd) {
          node = pool_.IsNullable(node) ? kEpsilon : kNothing;
        } else if (item.kind == RegexTree::kLook) {
          const NodeId look = Language(*item.parts[0], encoder_.AnyText(), false);
          node = pool_.And({node, item.negative ? pool_.Not(look) : look});
        } else if (anchored && i < start) {
          if (!pool_.IsNullable(Plain(item))) node = kNothing;  // something before the beginning
        } else {
          node = pool_.Concat(Plain(item), node);
        }
      }
      if (open_start && !anchored) node = pool_.Concat(encoder_.AnyText(), node);
      options.push_back(node);
    }
    return pool_.Alternate(std::move(options));
  }

  bool too_large() const { return too_large_; }

 private:
  CharEncoder& encoder_;
  RegexPool& pool_;
  bool too_large_ = false;
};

}  // namespace

NodeId ParseRegex(std::string_view pattern, const RegexOptions& options, CharEncoder& encoder, ParseError* error) {
  *error = {};
  if (pattern.find('\0') != std::string_view::npos) {
    *error = {pattern.find('\0'), "a NUL character is not allowed", false};
    return kNothing;
  }
  RegexTreePtr tree = ReadRegex(pattern, options, error);
  if (!error->ok() || !tree) return kNothing;
  Builder builder(encoder);
  const NodeId node = builder.Language(*tree, options.search ? encoder.AnyText() : kEpsilon, options.search);
  if (builder.too_large()) *error = {0, "too many alternatives with anchors", true};
  return node;
}

}  // namespace onpolicy::grammar
