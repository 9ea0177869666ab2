// Derivatives of each operator from those of its parts, by splitting bytes into classes.
#include "grammar/regex/edges.h"

#include <algorithm>

namespace onpolicy::grammar {

const std::vector<Edge>& EdgeTable::Of(NodeId id) {
  if (!Has(id)) {
    made_.push_back(std::make_unique<const std::vector<Edge>>(Make(id)));
    edges_[id] = made_.back().get();
  }
  return *edges_[id];
}

// Merges the edge lists of several parts into one with disjoint labels.
std::vector<Edge> EdgeTable::Combine(const std::vector<NodeId>& parts, bool is_and) {
  struct Class {
    ByteSet bytes;
    std::vector<NodeId> targets;
  };
  std::vector<Class> classes{{ByteSet::All(), {}}};
  for (NodeId part : parts) {
    const std::vector<Edge>& edges = Of(part);
    ByteSet covered;
    for (const Edge& edge : edges) covered = covered | edge.bytes;
    // Splits each class into the bytes that each edge covers, and the rest.
    const size_t count = classes.size();
    pool_.budget().Spend(edges.size() + count * (2 + edges.size() / 4));
    for (size_t i = 0; i < count; i++) {
      ByteSet rest = classes[i].bytes;
      if ((rest & covered).IsEmpty()) {
        if (is_and) classes[i].bytes = {};
        continue;
      }
      for (const Edge& edge : edges) {
        const ByteSet both = rest & edge.bytes;
        if (both.IsEmpty()) continue;
        rest = rest & ~both;
        if (rest.IsEmpty()) {
          classes[i].bytes = both;
          classes[i].targets.push_back(edge.target);
          break;
        }
        std::vector<NodeId> targets = classes[i].targets;
        targets.push_back(edge.target);
        classes.push_back({both, std::move(targets)});
        pool_.budget().Spend(8);
      }
      if (!rest.IsEmpty()) classes[i].bytes = is_and ? ByteSet{} : rest;
    }
  }
  std::vector<Edge> result;
  for (Class& entry : classes) {
    if (entry.targets.empty() || entry.bytes.IsEmpty()) continue;
    const NodeId target = is_and ? pool_.And(std::move(entry.targets)) : pool_.Alternate(std::move(entry.targets));
    if (target == kNothing) continue;
    auto same = std::find_if(result.begin(), result.end(), [&](const Edge& edge) { return edge.target == target; });
    if (same != result.end()) {
      same->bytes = same->bytes | entry.bytes;
    } else {
      result.push_back({entry.bytes, target});
    }
  }
  return result;
}

std::vector<Edge> EdgeTable::OfConcat(NodeId id) {
  // A run of nullable parts has several beginnings. A loop, because such runs may be long.
  std::vector<std::vector<Edge>> lists;
  NodeId rest = id;
  while (true) {
    const bool is_concat = pool_.node(rest).kind == NodeKind::kConcat;
    const NodeId head = is_concat ? pool_.node(rest).a : rest;
    const NodeId tail = is_concat ? pool_.node(rest).b : kEpsilon;
    std::vector<Edge> edges = Of(head);
    for (Edge& edge : edges) edge.target = pool_.Concat(edge.target, tail);
    lists.push_back(std::move(edges));
    if (!is_concat || !pool_.node(head).nullable) break;
    rest = tail;
  }
  if (lists.size() == 1) return lists[0];
  // Refines pairwise, from the last list to the first.
  std::vector<Edge> result = std::move(lists.back());
  for (size_t i = lists.size() - 1; i-- > 0;) {
    std::vector<Edge> merged;
    for (Edge& left : lists[i]) {
      ByteSet rest_bytes = left.bytes;
      for (Edge& right : result) {
        const ByteSet both = rest_bytes & right.bytes;
        if (both.IsEmpty()) continue;
        merged.push_back({both, pool_.Alternate({left.target, right.target})});
        rest_bytes = rest_bytes & ~both;
        right.bytes = right.bytes & ~both;
      }
      if (!rest_bytes.IsEmpty()) merged.push_back({rest_bytes, left.target});
    }
    for (Edge& right : result)
      if (!right.bytes.IsEmpty()) merged.push_back(right);
    result = std::move(merged);
  }
  return result;
}

std::vector<Edge> EdgeTable::OfNot(NodeId inner) {
  std::vector<Edge> result;
  ByteSet covered;
  for (const Edge& edge : Of(inner)) {
    covered = covered | edge.bytes;
    const NodeId target = pool_.Not(edge.target);
    if (target != kNothing) result.push_back({edge.bytes, target});
  }
  if (!(~covered).IsEmpty()) result.push_back({~covered, kAnyText});
  return result;
}

std::vector<Edge> EdgeTable::OfLeaf(const Node& leaf) {
  std::vector<Edge> result;
  Automaton* automaton = pool_.automaton_of(leaf);
  // Until the end of the loop, targets are the automaton's own states.
  automaton->First(leaf.b).ForEach([&](unsigned byte) {
    const uint32_t next = automaton->Next(leaf.b, static_cast<uint8_t>(byte));
    if (next == Automaton::kDead) return;
    auto edge = std::find_if(result.rbegin(), result.rend(), [&](const Edge& known) { return known.target == next; });
    if (edge == result.rend()) {
      result.push_back({{}, next});
      edge = result.rbegin();
    }
    edge->bytes.Add(byte);
  });
  for (Edge& edge : result) edge.target = pool_.Leaf(automaton, edge.target);
  return result;
}

std::vector<Edge> EdgeTable::Make(NodeId id) {
  const Node node = pool_.node(id);
  switch (node.kind) {
    case NodeKind::kNothing:
    case NodeKind::kEpsilon:
    case NodeKind::kTag:
      return {};
    case NodeKind::kBytes:
      return {{pool_.set_of(node), kEpsilon}};
    case NodeKind::kConcat:
      return OfConcat(id);
    case NodeKind::kAlternate:
    case NodeKind::kAnd:
      return Combine(pool_.ChildrenOf(id), node.kind == NodeKind::kAnd);
    case NodeKind::kNot:
      return OfNot(node.a);
    case NodeKind::kRepeat: {
      const NodeId rest = pool_.RestOf(node);
      std::vector<Edge> result = Of(node.a);
      for (Edge& edge : result) edge.target = pool_.Concat(edge.target, rest);
      return result;
    }
    case NodeKind::kLeaf:
      return OfLeaf(node);
  }
  return {};
}

}  // namespace onpolicy::grammar
