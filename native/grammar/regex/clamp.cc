// Replaces a count if no text of the length reaches it.
#include "grammar/regex/clamp.h"

#include <algorithm>

#include "base/scoped-value.h"

namespace onpolicy::grammar {

// Maximum number of expressions visited to find where the repetitions of a list end.
static constexpr uint32_t kBytesSteps = 300;

NodeId CountClamp::Of(NodeId node) {
  if (!pool_.node(node).counts) return node;
  if (const NodeId known = known_.Reach(node)) return known;
  if (depth_ == limits::kClampDepth) return node;
  const ScopedValue<int> depth(depth_, depth_ + 1);
  const NodeId made = Make(node);
  known_.Reach(node) = made;
  return made;
}

NodeId CountClamp::Make(NodeId node) {
  const Node given = pool_.node(node);
  pool_.budget().Spend(20);
  switch (given.kind) {
    case NodeKind::kRepeat: {
      // Keeps counts inside counts: their derivatives may drop alternatives, and then not the same ones.
      if (given.max != kUnlimited && given.max > 1 && HasCount(given.a)) return node;
      const NodeId inner = Of(given.a);
      if (given.max < 2 * length_) return pool_.Repeat(inner, given.min, given.max);
      return pool_.Repeat(inner, static_cast<uint32_t>(std::min<size_t>(given.min, length_ + 1)), kUnlimited);
    }
    case NodeKind::kConcat:
      return OfList(node);
    case NodeKind::kAlternate: {
      std::vector<NodeId> children = pool_.ChildrenOf(node);
      for (NodeId& child : children) child = Of(child);
      return pool_.Alternate(std::move(children));
    }
    default:
      return node;
  }
}

bool CountClamp::HasCount(NodeId node) {
  if (!pool_.node(node).repeats) return false;
  if (const Known known = has_count_.Reach(node); known != Known::kUnasked) return known == Known::kYes;
  if (depth_ == limits::kClampDepth) return true;
  const ScopedValue<int> depth(depth_, depth_ + 1);
  const Node given = pool_.node(node);
  bool has = true;
  if (given.kind == NodeKind::kRepeat) {
    has = (given.max != kUnlimited && given.max > 1) || HasCount(given.a);
  } else if (given.kind == NodeKind::kConcat) {
    has = HasCount(given.a) || HasCount(given.b);
  } else if (given.kind == NodeKind::kAlternate) {
    const std::vector<NodeId> children = pool_.ChildrenOf(node);
    has = std::any_of(children.begin(), children.end(), [&](NodeId child) { return HasCount(child); });
  }
  has_count_.Reach(node) = has ? Known::kYes : Known::kNo;
  return has;
}

// Keeps the parts before the first repetition; the parts behind them occur in many lists.
NodeId CountClamp::OfList(NodeId node) {
  std::vector<NodeId> parts;
  while (pool_.node(node).kind == NodeKind::kConcat && !pool_.node(pool_.node(node).a).repeats) {
    parts.push_back(pool_.node(node).a);
    node = pool_.node(node).b;
  }
  return pool_.Concat(parts, parts.empty() ? OfRepetitions(node) : Of(node));
}

// A loop, because concatenations may be long. Keeps several counts that a text may be in at once, for the same reason as counts inside
// counts.
NodeId CountClamp::OfRepetitions(NodeId node) {
  std::vector<NodeId> parts;
  int counts = 0;
  for (NodeId at = node;; at = pool_.node(at).b) {
    const bool is_list = pool_.node(at).kind == NodeKind::kConcat;
    counts += HasCount(is_list ? pool_.node(at).a : at);
    if (!is_list) break;
  }
  if (counts > 1 && !IsApart(node)) return node;
  for (; pool_.node(node).kind == NodeKind::kConcat; node = pool_.node(node).b) parts.push_back(Of(pool_.node(node).a));
  return pool_.Concat(parts, Of(node));
}

bool CountClamp::IsApart(NodeId node) {
  ByteSet open;  // bytes of the repetition that a text may be in, and of the parts that may follow it
  bool is_open = false;
  Allowance steps(kBytesSteps);
  for (NodeId at = node;; at = pool_.node(at).b) {
    const bool is_list = pool_.node(at).kind == NodeKind::kConcat;
    const NodeId id = is_list ? pool_.node(at).a : at;
    const Node part = pool_.node(id);
    const ByteSet bytes = BytesOf(id, &steps);
    is_open = is_open && (part.nullable || !(bytes & open).IsEmpty());
    if (part.repeats && is_open) return false;
    open = is_open ? open | bytes : bytes;
    is_open = is_open || part.repeats;
    if (!is_list) return true;
  }
}

ByteSet CountClamp::BytesOf(NodeId node, Allowance* steps) {
  if (steps->IsSpent()) return ByteSet::All();
  steps->Spend();
  pool_.budget().Spend(2);
  const Node given = pool_.node(node);
  ByteSet bytes;
  switch (given.kind) {
    case NodeKind::kNothing:
    case NodeKind::kEpsilon:
    case NodeKind::kTag:
      return {};
    case NodeKind::kBytes:
      return pool_.set_of(given);
    case NodeKind::kRepeat:
      return BytesOf(given.a, steps);
    case NodeKind::kConcat:
      return BytesOf(given.a, steps) | BytesOf(given.b, steps);
    case NodeKind::kAlternate:
      for (NodeId child : pool_.ChildrenOf(node)) bytes = bytes | BytesOf(child, steps);
      return bytes;
    default:
      return ByteSet::All();
  }
}

}  // namespace onpolicy::grammar
