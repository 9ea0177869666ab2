// What an expression holds: whether any text, whether a given one, and how many.
#include <algorithm>
#include <unordered_set>

#include "grammar/regex-pool.h"

namespace onpolicy::grammar {

// States looked at before a language is relaxed.
static constexpr size_t kShortSearch = 2000;
// Counts up to this stay in a relaxed language.
static constexpr uint32_t kSmallCount = 8;

bool RegexPool::IsLive(NodeId node) {
  if (node == kNothing) return false;
  if (!nodes_[node].searches || nodes_[node].nullable) return true;
  if (live_[node]) return live_[node] == 1;
  bool live = true;
  switch (nodes_[node].kind) {
    case Kind::kConcat:
      for (NodeId rest = node; live;) {
        const bool is_concat = nodes_[rest].kind == Kind::kConcat;
        live = IsLive(is_concat ? nodes_[rest].a : rest);
        if (!is_concat) break;
        rest = nodes_[rest].b;
      }
      break;
    case Kind::kAlternate: {
      live = false;
      for (NodeId child : ChildrenOf(node)) live = live || IsLive(child);
      break;
    }
    case Kind::kRepeat:
      live = IsLive(nodes_[node].a);
      break;
    default:
      return Search(node);
  }
  live_[node] = live ? 1 : 2;
  return live;
}

// Whether the language holds any text: a short look, then one at a larger language without large counts, then a long look.
bool RegexPool::Search(NodeId start) {
  Finding finding = DepthFirst(start, kShortSearch);
  if (finding == Finding::kUnknown) {
    const NodeId relaxed = Relaxed(start);
    if (relaxed != start && DepthFirst(relaxed, search_limit_) == Finding::kNothing) {
      live_[start] = 2;
      return false;
    }
    finding = DepthFirst(start, search_limit_);
    exhausted_ = exhausted_ || finding == Finding::kUnknown;
  }
  return finding != Finding::kNothing;
}

// Looks for any accepted text in at most `limit` states.
RegexPool::Finding RegexPool::DepthFirst(NodeId start, size_t limit) {
  std::unordered_set<NodeId> seen{start};
  struct Step {
    NodeId node;
    size_t edge;
  };
  std::vector<Step> path{{start, 0}};
  while (!path.empty()) {
    Step& step = path.back();
    const NodeId node = step.node;
    if (nodes_[node].nullable || live_[node] == 1 || !nodes_[node].searches) {
      for (const Step& on_path : path) live_[on_path.node] = 1;
      return Finding::kText;
    }
    const std::vector<Edge>& edges = Edges(node);
    if (live_[node] == 2 || step.edge == edges.size()) {
      path.pop_back();
      continue;
    }
    const NodeId target = edges[step.edge++].target;
    if (seen.insert(target).second) path.push_back({target, 0});
    if (seen.size() > limit) return Finding::kUnknown;
  }
  for (NodeId node : seen) live_[node] = 2;
  return Finding::kNothing;
}

// A language that holds this one, with "many" in place of large counts: two of those have few states together.
NodeId RegexPool::Relaxed(NodeId node) {
  const auto known = relaxed_.find(node);
  if (known != relaxed_.end()) return known->second;
  const Node given = nodes_[node];
  NodeId result = node;
  if (given.kind == Kind::kRepeat) {
    const bool is_large = given.min > kSmallCount || (given.max != kUnlimited && given.max > kSmallCount);
    const NodeId inner = Relaxed(given.a);
    result = is_large ? Repeat(inner, std::min(given.min, 1u), kUnlimited) : Repeat(inner, given.min, given.max);
  } else if (given.kind == Kind::kConcat) {
    std::vector<NodeId> parts;
    NodeId rest = node;
    for (; nodes_[rest].kind == Kind::kConcat; rest = nodes_[rest].b) parts.push_back(nodes_[rest].a);
    result = Relaxed(rest);
    for (size_t i = parts.size(); i-- > 0;) result = Concat(Relaxed(parts[i]), result);
  } else if (given.kind == Kind::kAlternate || given.kind == Kind::kAnd) {
    std::vector<NodeId> children = ChildrenOf(node);
    for (NodeId& child : children) child = Relaxed(child);
    result = MergeList(given.kind, std::move(children));
  }
  return relaxed_[node] = result;
}

bool RegexPool::Matches(NodeId node, std::string_view text) {
  for (char byte : text) {
    node = Next(node, static_cast<uint8_t>(byte));
    if (node == kNothing) return false;
  }
  return nodes_[node].nullable;
}

uint64_t RegexPool::CountTexts(NodeId start, uint64_t cap) {
  // Breadth first over (state, number of texts that lead here); a language with a cycle never ends and meets the cap.
  std::unordered_map<NodeId, uint64_t> level{{start, 1}};
  uint64_t count = 0;
  for (size_t depth = 0; !level.empty() && depth < 4096; depth++) {
    std::unordered_map<NodeId, uint64_t> next_level;
    for (const auto& [node, ways] : level) {
      if (nodes_[node].nullable) count = std::min(cap, count + ways);
      if (count >= cap) return cap;
      for (const Edge& edge : std::vector<Edge>(Edges(node)))
        if (IsLive(edge.target)) {
          uint64_t& sum = next_level[edge.target];
          sum = std::min<uint64_t>(cap, sum + ways * edge.bytes.Count());
        }
    }
    if (next_level.size() > 5000) return cap;
    level = std::move(next_level);
  }
  return level.empty() ? count : cap;
}

}  // namespace onpolicy::grammar
