// What an expression holds: whether any text, whether a given one, and how many.
#include <algorithm>
#include <unordered_set>

#include "regex/pool.h"

namespace onpolicy::grammar {

// States looked at by the length of the texts that lead there.
static constexpr size_t kNearStates = 300;
// States looked at before a language is relaxed, after that, and by all searches of a compilation.
static constexpr size_t kShortSearch = 2000;
static constexpr size_t kLongSearch = 20000;
static constexpr size_t kAllStates = 100000;
// What a compilation may have cost, searches and all else, until its searches end: about a second.
static constexpr uint64_t kCompileWork = 100'000'000;
// What a search in a step may cost when those before it have used up its share.
static constexpr uint64_t kLeastSearch = 5000;
// What counting texts may cost in a step.
static constexpr uint64_t kCountWork = 100'000;
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

// Whether the language holds any text: a look at the shortest ones, one down single texts, then one at a larger language
// without large counts, and a long look. What stays open is taken for live, and a constraint is then refused. In a step of a
// compiled one it is taken for dead: the text by which an earlier state was found to live goes on all the same.
bool RegexPool::Search(NodeId start) {
  const bool is_step = is_bound_;
  const uint64_t last_work = is_step ? std::max(search_end_, work_ + kLeastSearch) : kCompileWork;
  const auto is_over = [&] { return !is_bound_ && (searched_ > kAllStates || work_ > kCompileWork); };
  Finding finding = is_over() ? Finding::kUnknown : BreadthFirst(start, kNearStates, last_work);
  if (finding == Finding::kUnknown && !is_over()) finding = DepthFirst(start, is_step ? kLongSearch : kShortSearch, last_work);
  if (finding == Finding::kUnknown && !is_step && !is_over()) {
    const NodeId relaxed = Relaxed(start);
    finding = relaxed == start ? Finding::kUnknown : DepthFirst(relaxed, kLongSearch, last_work);
    if (finding != Finding::kNothing) finding = DepthFirst(start, kLongSearch, last_work);
  }
  exhausted_ = exhausted_ || finding == Finding::kUnknown;
  has_given_up_ = has_given_up_ || (is_step && finding == Finding::kUnknown);
  is_exact_ = is_exact_ && !has_given_up_;
  const bool is_live = finding == Finding::kText || (finding == Finding::kUnknown && !is_step);
  live_[start] = is_live ? 1 : 2;
  return is_live;
}

// Looks for the shortest accepted text, as DepthFirst does for any.
RegexPool::Finding RegexPool::BreadthFirst(NodeId start, size_t limit, uint64_t last_work) {
  struct Step {
    NodeId node;
    size_t from;
  };
  std::vector<Step> steps{{start, 0}};
  std::unordered_set<NodeId> seen{start};
  for (size_t at = 0; at < steps.size(); at++) {
    const NodeId node = steps[at].node;
    if (nodes_[node].nullable || live_[node] == 1 || !nodes_[node].searches) {
      for (size_t step = at; ; step = steps[step].from) {
        live_[steps[step].node] = 1;
        if (step == 0) return Finding::kText;
      }
    }
    if (live_[node] == 2) continue;
    if (at > limit || work_ > last_work) return Finding::kUnknown;
    CountSearched();
    for (const Edge& edge : Edges(node))
      if (seen.insert(edge.target).second) steps.push_back({edge.target, at});
  }
  for (const Step& step : steps) live_[step.node] = 2;
  return Finding::kNothing;
}

void RegexPool::CountSearched() {
  searched_++;
  work_ += 30;
}

// Looks for any accepted text in at most `limit` states, until so much work is done in all.
RegexPool::Finding RegexPool::DepthFirst(NodeId start, size_t limit, uint64_t last_work) {
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
    if (seen.insert(target).second) {
      CountSearched();
      path.push_back({target, 0});
    }
    if (seen.size() > limit || work_ > last_work) return Finding::kUnknown;
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

uint64_t RegexPool::CountTexts(NodeId start, uint64_t cap, bool is_sure) {
  const uint64_t last_work = is_bound_ ? work_ + kCountWork : UINT64_MAX;
  // Breadth first over (state, number of texts that lead here); a language with a cycle never ends and meets the cap.
  std::unordered_map<NodeId, uint64_t> level{{start, 1}};
  uint64_t count = 0;
  for (size_t depth = 0; !level.empty() && depth < 4096; depth++) {
    std::unordered_map<NodeId, uint64_t> next_level;
    for (const auto& [node, ways] : level) {
      if (nodes_[node].nullable) count = std::min(cap, count + ways);
      if (count >= cap) return cap;
      if (work_ > last_work) return is_sure ? count : cap;
      CountSearched();
      for (const Edge& edge : std::vector<Edge>(Edges(node)))
        if (IsLive(edge.target)) {
          uint64_t& sum = next_level[edge.target];
          sum = std::min<uint64_t>(cap, sum + ways * edge.bytes.Count());
        }
    }
    if (next_level.size() > 5000) return is_sure ? count : cap;
    level = std::move(next_level);
  }
  return level.empty() || is_sure ? count : cap;
}

}  // namespace onpolicy::grammar
