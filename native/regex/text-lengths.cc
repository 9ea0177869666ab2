// Characters are counted by their first bytes; an escape counts as one where that is sure.
#include "regex/text-lengths.h"

#include <algorithm>

namespace onpolicy::grammar {

TextLengths::Answer TextLengths::HasText(NodeId node) {
  const Node all = pool_.node(node);
  if (all.kind != NodeKind::kAnd) return Answer::kUnknown;
  uint64_t min = 0, max = UINT64_MAX;  // characters
  Bounds texts{0, 0};
  size_t counts = 0;
  for (uint32_t at = all.min; at < all.max; at++) {
    const Node part = pool_.node(pool_.child(at));
    if (part.kind == NodeKind::kRepeat && part.a == pool_.any_character()) {
      counts++;
      min = std::max<uint64_t>(min, part.min);
      if (part.max != kUnlimited) max = std::min<uint64_t>(max, part.max);
    } else {
      const Bounds bounds = part.searches ? Bounds{0, kMany} : Of(pool_.child(at));
      texts = {std::max(texts.least, bounds.least), std::max(texts.enough, bounds.enough)};
    }
  }
  if (counts > 0 && texts.least > max) return Answer::kNothing;
  if (counts != 1 || all.max - all.min != 2) return Answer::kUnknown;
  return texts.enough <= max && texts.least >= min ? Answer::kText : Answer::kUnknown;
}

TextLengths::Bounds TextLengths::Of(NodeId node) {
  if (const auto known = known_.find(node); known != known_.end()) return known->second;
  Bounds bounds = Make(node);
  bounds = {std::min(bounds.least, kMany), std::min(bounds.enough, kMany)};
  known_.emplace(node, bounds);
  return bounds;
}

TextLengths::Bounds TextLengths::Make(NodeId node) {
  const Node given = pool_.node(node);
  pool_.budget().Spend(10);
  switch (given.kind) {
    case NodeKind::kEpsilon:
      return {0, 0};
    case NodeKind::kBytes: {
      static const ByteSet inside = ByteSet::Range(0x80, 0xBF);
      const bool may_be_inside = !(pool_.set_of(given) & inside).IsEmpty();
      return {may_be_inside ? 0u : 1u, 1};
    }
    case NodeKind::kConcat: {
      Bounds sum{0, 0};
      bool is_escape = false;  // how many characters are behind a backslash is not sure
      for (NodeId at = node;; at = pool_.node(at).b) {
        const bool is_list = pool_.node(at).kind == NodeKind::kConcat;
        const NodeId head = is_list ? pool_.node(at).a : at;
        const Bounds part = Of(head);
        if (!is_escape) sum.least += part.least;
        sum.enough += part.enough;
        const Node& first = pool_.node(head);
        is_escape = is_escape || (first.kind == NodeKind::kBytes && pool_.set_of(first).Has('\\'));
        if (!is_list) return sum;
      }
    }
    case NodeKind::kAlternate: {
      Bounds best{kMany, kMany};
      for (uint32_t i = given.min; i < given.max; i++) {
        const Bounds part = Of(pool_.child(i));
        best = {std::min(best.least, part.least), std::min(best.enough, part.enough)};
      }
      return best;
    }
    case NodeKind::kRepeat: {
      const Bounds item = Of(given.a);
      return {item.least * given.min, item.enough * given.min};
    }
    default:
      return {0, kMany};
  }
}

}  // namespace onpolicy::grammar
