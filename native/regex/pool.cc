// Hash-consing and simplification of expressions, their derivatives, and the lazy automaton over them.
#include "regex/pool.h"

#include <algorithm>

namespace onpolicy::grammar {

static uint64_t Mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15ull + (hash << 6) + (hash >> 2);
  return hash * 0xBF58476D1CE4E5B9ull;
}

RegexPool::RegexPool() {
  Intern({Kind::kNothing, false, false, false, false, 0, 0, 0, 0}, nullptr);
  Intern({Kind::kEpsilon, true, false, false, false, 0, 0, 0, 0}, nullptr);
  // kAnyText must be node 2, before the byte set it repeats: a repetition of node 3.
  Intern({Kind::kRepeat, true, false, false, true, 3, 0, 0, kUnlimited}, nullptr);
  Bytes(ByteSet::All());
}

NodeId RegexPool::Intern(const Node& node, const std::vector<NodeId>* children) {
  uint64_t hash = Mix(static_cast<uint64_t>(node.kind), (static_cast<uint64_t>(node.a) << 32) | node.b);
  if (node.kind == Kind::kBytes) {
    for (uint64_t word : sets_.back().words) hash = Mix(hash, word);
  } else if (children) {
    for (NodeId child : *children) hash = Mix(hash, child);
  } else {
    hash = Mix(hash, (static_cast<uint64_t>(node.min) << 32) | node.max);
  }
  hash = MixBits(hash);
  const NodeId known = index_.FindHash(hash, [&](NodeId id) {
    const Node& other = nodes_[id];
    if (other.kind != node.kind || other.a != node.a || other.b != node.b) return false;
    if (node.kind == Kind::kBytes) return sets_[other.min] == sets_.back();
    if (!children) return other.min == node.min && other.max == node.max;
    return other.max - other.min == children->size() &&
           std::equal(children->begin(), children->end(), children_.begin() + other.min);
  });
  work_ += 6 + (children ? children->size() / 2 : 0);
  if (known != HashIndex::kNone) {
    if (node.kind == Kind::kBytes) sets_.pop_back();
    return known;
  }
  Node stored = node;
  if (node.kind == Kind::kBytes) stored.min = static_cast<uint32_t>(sets_.size() - 1);
  if (children) {
    stored.min = static_cast<uint32_t>(children_.size());
    children_.insert(children_.end(), children->begin(), children->end());
    stored.max = static_cast<uint32_t>(children_.size());
  }
  work_ += 30 + (children ? 3 * children->size() : 0);
  const NodeId id = static_cast<NodeId>(nodes_.size());
  nodes_.push_back(stored);
  forms_.push_back(MakeForm(id));
  edges_.push_back(nullptr);
  tags_.push_back(nullptr);
  row_of_.push_back(nullptr);
  live_.push_back(0);
  derived_.push_back({});
  index_.AddHash(hash, id);
  return id;
}

std::vector<NodeId> RegexPool::ChildrenOf(NodeId node) const {
  return {children_.begin() + nodes_[node].min, children_.begin() + nodes_[node].max};
}

NodeId RegexPool::Bytes(const ByteSet& set) {
  if (set.IsEmpty()) return kNothing;
  sets_.push_back(set);
  return Intern({Kind::kBytes, false, false, false, false, 0, 0, 0, 0}, nullptr);
}

NodeId RegexPool::Literal(std::string_view text) {
  NodeId node = kEpsilon;
  for (size_t i = text.size(); i-- > 0;) {
    ByteSet set;
    set.Add(static_cast<uint8_t>(text[i]));
    node = Concat(Bytes(set), node);
  }
  return node;
}

// A concatenation whose left side is none itself.
NodeId RegexPool::Prepend(NodeId first, NodeId second) {
  const Node& head = nodes_[first];
  const Node& tail = nodes_[second];
  return Intern({Kind::kConcat, head.nullable && tail.nullable, head.searches || tail.searches, head.tagged || tail.tagged,
                 head.repeats || tail.repeats, first, second, 0, 0},
                nullptr);
}

NodeId RegexPool::Concat(NodeId first, NodeId second) {
  if (first == kNothing || second == kNothing) return kNothing;
  if (first == kEpsilon) return second;
  if (second == kEpsilon) return first;
  if (first == kAnyText && second == kAnyText) return kAnyText;
  // Right-nested: the left side of a concatenation is never itself one.
  if (nodes_[first].kind != Kind::kConcat) return Prepend(first, second);
  std::vector<NodeId> parts;
  for (; nodes_[first].kind == Kind::kConcat; first = nodes_[first].b) parts.push_back(nodes_[first].a);
  NodeId result = Prepend(first, second);
  for (size_t i = parts.size(); i-- > 0;) result = Prepend(parts[i], result);
  return result;
}

NodeId RegexPool::Concat(std::initializer_list<NodeId> parts) {
  NodeId node = kEpsilon;
  for (auto it = std::rbegin(parts); it != std::rend(parts); ++it) node = Concat(*it, node);
  return node;
}

NodeId RegexPool::MergeList(Kind kind, std::vector<NodeId> parts) {
  const bool is_and = kind == Kind::kAnd;
  const NodeId neutral = is_and ? kAnyText : kNothing;
  const NodeId dominant = is_and ? kNothing : kAnyText;
  std::vector<NodeId> flat;
  work_ += 8 + 5 * parts.size();
  bool has_bytes = false;
  ByteSet bytes = is_and ? ByteSet::All() : ByteSet{};
  for (NodeId part : parts) {
    const auto take = [&](NodeId child) {
      if (nodes_[child].kind == Kind::kBytes) {
        const ByteSet& set = sets_[nodes_[child].min];
        bytes = is_and ? bytes & set : bytes | set;
        has_bytes = true;
      } else {
        flat.push_back(child);
      }
    };
    if (part == neutral) continue;
    if (part == dominant) return dominant;
    if (nodes_[part].kind == kind) {
      const std::vector<NodeId> children = ChildrenOf(part);
      work_ += 5 * children.size();
      for (NodeId child : children) take(child);
    } else {
      take(part);
    }
  }
  if (has_bytes) {
    const NodeId merged = Bytes(bytes);
    if (merged == dominant) return dominant;
    if (merged != neutral) flat.push_back(merged);
  }
  work_ += 8 * flat.size();
  std::sort(flat.begin(), flat.end());
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  if (!is_and) {
    Absorb(&flat);
    std::sort(flat.begin(), flat.end());
  }
  if (flat.empty()) return neutral;
  if (flat.size() == 1) return flat[0];
  Node node{kind, is_and, is_and, false, false, 0, 0, 0, 0};
  for (NodeId child : flat) {
    const Node& inner = nodes_[child];
    node.nullable = is_and ? node.nullable && inner.nullable : node.nullable || inner.nullable;
    node.searches = node.searches || inner.searches;
    node.tagged = node.tagged || inner.tagged;
    node.repeats = node.repeats || inner.repeats;
    if (inner.kind == Kind::kNot && std::binary_search(flat.begin(), flat.end(), inner.a)) return dominant;
  }
  return Intern(node, &flat);
}

NodeId RegexPool::Alternate(std::vector<NodeId> options) { return MergeList(Kind::kAlternate, std::move(options)); }

NodeId RegexPool::And(std::vector<NodeId> parts) { return MergeList(Kind::kAnd, std::move(parts)); }

NodeId RegexPool::Not(NodeId inner) {
  if (inner == kNothing) return kAnyText;
  if (inner == kAnyText) return kNothing;
  const Node& node = nodes_[inner];
  if (node.kind == Kind::kNot) return node.a;
  return Intern({Kind::kNot, !node.nullable, true, false, false, inner, 0, 0, 0}, nullptr);
}

NodeId RegexPool::Repeat(NodeId inner, uint32_t min, uint32_t max) {
  if (max == 0 || inner == kEpsilon) return kEpsilon;
  if (inner == kNothing) return min == 0 ? kEpsilon : kNothing;
  if (nodes_[inner].nullable) min = 0;
  if (min == 1 && max == 1) return inner;
  const Node& node = nodes_[inner];
  if (node.kind == Kind::kRepeat && node.max == kUnlimited && node.min <= 1) {
    if (min == 0 || node.min == 0) return Repeat(node.a, 0, kUnlimited);
    return Repeat(node.a, min, kUnlimited);
  }
  return Intern({Kind::kRepeat, min == 0, nodes_[inner].searches, nodes_[inner].tagged, true, inner, 0, min, max}, nullptr);
}

NodeId RegexPool::Tag(uint32_t tag) { return Intern({Kind::kTag, true, false, true, false, tag, 0, 0, 0}, nullptr); }

Automaton* RegexPool::Own(std::unique_ptr<Automaton> automaton) {
  automata_.push_back(std::move(automaton));
  return automata_.back().get();
}

NodeId RegexPool::Leaf(Automaton* automaton, uint32_t state) {
  if (state == Automaton::kDead) return kNothing;
  auto [it, is_new] = leaf_index_.emplace(automaton, static_cast<uint32_t>(leaves_.size()));
  if (is_new) {
    leaves_.push_back(automaton);
    leaf_forms_.push_back(FormOfAutomaton(*automaton));
  }
  return Intern({Kind::kLeaf, automaton->Accepts(state), true, false, false, it->second, state, 0, 0}, nullptr);
}

const std::vector<uint32_t>& RegexPool::AcceptedTags(NodeId node) {
  static const std::vector<uint32_t> none, first{0};
  if (!nodes_[node].tagged) return nodes_[node].nullable ? first : none;
  if (tags_[node]) return *tags_[node];
  // Tags stand only at the end of the alternatives of a merged terminal.
  std::vector<uint32_t> tags;
  std::vector<NodeId> options{node};
  if (nodes_[node].kind == Kind::kAlternate) options = ChildrenOf(node);
  for (NodeId option : options) {
    bool nullable = true;
    while (nodes_[option].kind == Kind::kConcat && nullable) {
      nullable = nodes_[nodes_[option].a].nullable;
      option = nodes_[option].b;
    }
    if (nullable && nodes_[option].kind == Kind::kTag) tags.push_back(nodes_[option].a);
    if (nullable && nodes_[option].kind == Kind::kAlternate)  // a factored tail
      for (uint32_t tag : AcceptedTags(option)) tags.push_back(tag);
  }
  std::sort(tags.begin(), tags.end());
  tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
  tags_[node] = std::make_unique<std::vector<uint32_t>>(std::move(tags));
  return *tags_[node];
}

const std::vector<RegexPool::Edge>& RegexPool::Edges(NodeId node) {
  if (!edges_[node]) {
    auto made = std::make_unique<std::vector<Edge>>(MakeEdges(node));
    edges_[node] = std::move(made);
  }
  return *edges_[node];
}

// Merges the edge lists of several parts into one with disjoint labels.
std::vector<RegexPool::Edge> RegexPool::Combine(const std::vector<NodeId>& parts, bool is_and) {
  struct Class {
    ByteSet bytes;
    std::vector<NodeId> targets;
  };
  std::vector<Class> classes{{ByteSet::All(), {}}};
  for (NodeId part : parts) {
    const std::vector<Edge>& edges = Edges(part);
    ByteSet covered;
    for (const Edge& edge : edges) covered = covered | edge.bytes;
    // Each class shrinks to what the part does not cover; what an edge takes from it becomes a class of its own.
    const size_t count = classes.size();
    work_ += edges.size() + count * (2 + 2 * edges.size());
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
      }
      if (!rest.IsEmpty()) classes[i].bytes = is_and ? ByteSet{} : rest;
    }
  }
  std::vector<Edge> result;
  for (Class& entry : classes) {
    if (entry.targets.empty() || entry.bytes.IsEmpty()) continue;
    const NodeId target = is_and ? And(std::move(entry.targets)) : Alternate(std::move(entry.targets));
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

std::vector<RegexPool::Edge> RegexPool::MakeEdges(NodeId id) {
  const Node node = nodes_[id];
  std::vector<Edge> result;
  switch (node.kind) {
    case Kind::kNothing:
    case Kind::kEpsilon:
    case Kind::kTag:
      break;
    case Kind::kBytes:
      result.push_back({sets_[node.min], kEpsilon});
      break;
    case Kind::kConcat: {
      // A run of nullable parts opens several beginnings; walked in a loop because such runs may be long.
      std::vector<NodeId> beginnings;
      std::vector<std::vector<Edge>> lists;
      NodeId rest = id;
      while (true) {
        const bool is_concat = nodes_[rest].kind == Kind::kConcat;
        const NodeId head = is_concat ? nodes_[rest].a : rest;
        const NodeId tail = is_concat ? nodes_[rest].b : kEpsilon;
        std::vector<Edge> edges = Edges(head);
        for (Edge& edge : edges) edge.target = Concat(edge.target, tail);
        lists.push_back(std::move(edges));
        if (!is_concat || !nodes_[head].nullable) break;
        rest = tail;
      }
      if (lists.size() == 1) return lists[0];
      // Refines pairwise from the last to the first.
      result = std::move(lists.back());
      for (size_t i = lists.size() - 1; i-- > 0;) {
        std::vector<Edge> merged;
        for (Edge& left : lists[i]) {
          ByteSet rest_bytes = left.bytes;
          for (Edge& right : result) {
            const ByteSet both = rest_bytes & right.bytes;
            if (both.IsEmpty()) continue;
            merged.push_back({both, Alternate({left.target, right.target})});
            rest_bytes = rest_bytes & ~both;
            right.bytes = right.bytes & ~both;
          }
          if (!rest_bytes.IsEmpty()) merged.push_back({rest_bytes, left.target});
        }
        for (Edge& right : result)
          if (!right.bytes.IsEmpty()) merged.push_back(right);
        result = std::move(merged);
      }
      break;
    }
    case Kind::kAlternate:
      return Combine(ChildrenOf(id), false);
    case Kind::kAnd:
      return Combine(ChildrenOf(id), true);
    case Kind::kNot: {
      ByteSet covered;
      const std::vector<Edge>& inner = Edges(node.a);
      for (const Edge& edge : inner) {
        covered = covered | edge.bytes;
        const NodeId target = Not(edge.target);
        if (target != kNothing) result.push_back({edge.bytes, target});
      }
      if (!(~covered).IsEmpty()) result.push_back({~covered, kAnyText});
      break;
    }
    case Kind::kRepeat: {
      const NodeId rest = RestOf(node);
      result = Edges(node.a);
      for (Edge& edge : result) edge.target = Concat(edge.target, rest);
      break;
    }
    case Kind::kLeaf: {
      Automaton* automaton = leaves_[node.a];
      // Until the end of the loop, targets are the automaton's own states.
      for (unsigned byte = 0; byte < 256; byte++) {
        const uint32_t next = automaton->Next(node.b, static_cast<uint8_t>(byte));
        if (next == Automaton::kDead) continue;
        auto edge = std::find_if(result.rbegin(), result.rend(), [&](const Edge& known) { return known.target == next; });
        if (edge == result.rend()) {
          result.push_back({{}, next});
          edge = result.rbegin();
        }
        edge->bytes.Add(byte);
      }
      for (Edge& edge : result) edge.target = Leaf(automaton, edge.target);
      break;
    }
  }
  return result;
}

}  // namespace onpolicy::grammar
