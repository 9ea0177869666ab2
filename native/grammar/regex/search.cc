// Searches over derivatives, breadth first and depth first.
#include "grammar/regex/search.h"

#include <algorithm>
#include <deque>
#include <unordered_set>

#include "base/scoped-value.h"
#include "grammar/regex/pool.h"

namespace onpolicy::grammar {

// Maximum bytes of a text that is tried before a search.
static constexpr size_t kTriedText = 200;

bool LanguageSearch::IsLive(NodeId node) {
  if (node == kNothing) return false;
  if (!pool_.node(node).searches || pool_.node(node).nullable) return true;
  if (IsKnown(node)) return live_[node] == kLive;
  bool live = true, is_sure = true;  // sure: every part has an answer
  const auto ask = [&](NodeId part) {
    const bool answer = IsLive(part);
    is_sure = is_sure && (answer || part == kNothing || IsKnown(part));
    return answer;
  };
  switch (pool_.node(node).kind) {
    case NodeKind::kConcat:
      for (NodeId rest = node; live;) {
        const bool is_concat = pool_.node(rest).kind == NodeKind::kConcat;
        live = ask(is_concat ? pool_.node(rest).a : rest);
        if (!is_concat) break;
        rest = pool_.node(rest).b;
      }
      break;
    case NodeKind::kAlternate: {
      const std::vector<NodeId> options = pool_.ChildrenOf(node);
      live = std::any_of(options.begin(), options.end(), ask);
      break;
    }
    case NodeKind::kRepeat:
      live = ask(pool_.node(node).a);
      break;
    default:
      return Search(node);
  }
  if (live || is_sure) live_.Reach(node) = live ? kLive : kDead;
  return live;
}

bool LanguageSearch::IsLiveIn(NodeId node, uint64_t end) {
  const ScopedValue<uint64_t> patient(patient_end_, end);
  return IsLive(node);
}

const std::string* LanguageSearch::ShortText(NodeId id) {
  auto known = short_texts_.find(id);
  if (known == short_texts_.end()) {
    pool_.budget().Spend(20);
    std::optional<std::string> text = MakeShortText(Node(pool_.node(id)));
    if (text && text->size() > kTriedText) text.reset();
    known = short_texts_.emplace(id, std::move(text)).first;
  }
  return known->second ? &*known->second : nullptr;
}

std::optional<std::string> LanguageSearch::MakeShortText(const Node& node) {
  switch (node.kind) {
    case NodeKind::kEpsilon:
    case NodeKind::kTag:
      return "";
    case NodeKind::kBytes: {
      std::string text;
      pool_.set_of(node).ForEach([&](unsigned byte) {
        if (text.empty()) text.push_back(static_cast<char>(byte));
      });
      return text;
    }
    case NodeKind::kConcat: {
      std::string text;
      for (NodeTable::Split rest{node.a, node.b};; rest = pool_.SplitHead(rest.tail)) {
        const std::string* const head = ShortText(rest.head);
        if (!head || text.size() > kTriedText) return std::nullopt;
        text += *head;
        if (rest.tail == kEpsilon) return text;
      }
    }
    case NodeKind::kAlternate: {
      const std::string* least = nullptr;
      for (uint32_t i = node.min; i < node.max; i++)
        if (const std::string* text = ShortText(pool_.child(i)); text && (!least || text->size() < least->size())) least = text;
      return least ? std::optional(*least) : std::nullopt;
    }
    case NodeKind::kRepeat: {
      std::string text;
      if (node.min == 0) return text;
      const std::string* item = ShortText(node.a);
      for (uint32_t i = 0; item && i < node.min && text.size() <= kTriedText; i++) text += *item;
      return item ? std::optional(text) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

bool LanguageSearch::Takes(NodeId id, std::string_view text, Taken* known) {
  pool_.budget().Spend(1);
  if (const auto found = known->find(id); found != known->end()) return found->second;
  const bool takes = TakesAnew(id, text, known);
  known->emplace(id, takes);
  return takes;
}

bool LanguageSearch::TakesAnew(NodeId id, std::string_view text, Taken* known) {
  const Node& node = pool_.node(id);
  const auto takes = [&](NodeId part) { return Takes(part, text, known); };
  if (node.kind == NodeKind::kNot) return !takes(node.a);
  if (node.kind == NodeKind::kAnd || (node.kind == NodeKind::kAlternate && node.searches)) {
    const std::vector<NodeId> parts = pool_.ChildrenOf(id);
    return node.kind == NodeKind::kAnd ? std::all_of(parts.begin(), parts.end(), takes) : std::any_of(parts.begin(), parts.end(), takes);
  }
  pool_.budget().Spend(text.size());
  if (!node.searches) return pool_.Matches(id, text);
  for (char c : text) {
    const std::vector<Edge>& edges = derivatives_.AllOf(id);
    const auto edge = std::find_if(edges.begin(), edges.end(), [&](const Edge& one) { return one.bytes.Has(static_cast<uint8_t>(c)); });
    if (edge == edges.end()) return false;
    id = edge->target;
  }
  return pool_.IsNullable(id);
}

bool LanguageSearch::HasTextOfParts(NodeId intersection) {
  if (pool_.node(intersection).kind != NodeKind::kAnd) return false;
  std::string forth, back;
  const auto takes = [&](const std::string& text) {
    Taken known;
    const bool is_text = Takes(intersection, text, &known);
    if (is_text) live_.Reach(intersection) = kLive;
    return is_text;
  };
  for (NodeId part : pool_.ChildrenOf(intersection)) {
    const std::string* const text = pool_.node(part).searches ? nullptr : ShortText(part);
    if (!text || text->empty()) continue;
    if (takes(*text)) return true;
    forth += *text;
    back = *text + back;
  }
  return forth != back && (takes(forth) || takes(back));
}

// Searches for a text: first one made of the shortest texts of its parts, then depth first, then in a larger language without large counts,
// then longer. Without an answer, the state counts as live in a compilation, which is then refused. In a step it counts as dead, and
// RegexPool::Unstick allows it if nothing else is left.
bool LanguageSearch::Search(NodeId start) {
  const bool is_step = is_bound_;
  const bool is_patient = patient_end_ > 0;
  if (is_step && !is_patient && undecided_.contains(start)) {
    pool_.budget().Cut(Phase::kSearch);
    return false;
  }
  if (HasTextOfParts(start)) return true;
  const Phase phase = is_step ? Phase::kSearch : Phase::kCompile;
  uint64_t end = pool_.budget().end(phase);
  if (is_step) end = std::max(end, pool_.budget().EndOf(limits::kLeastSearchWork));
  if (is_patient) end = std::min(patient_end_, pool_.budget().EndOf(limits::kStuckSearchWork));
  const auto is_over = [&] { return !is_step && (searched_ > limits::kCompileStates || pool_.budget().IsSpent(phase)); };
  Finding finding = is_over() ? Finding::kUnknown : Explore(start, false, limits::kNearStates, end);
  if (finding == Finding::kUnknown && !is_over())
    finding = Explore(start, true, is_step ? limits::kLongSearch : limits::kShortSearch, end);
  if (finding == Finding::kUnknown && !is_step && !is_over()) {
    const NodeId relaxed = Relaxed(start);
    finding = relaxed == start ? Finding::kUnknown : Explore(relaxed, true, limits::kLongSearch, end);
    if (finding != Finding::kNothing) finding = Explore(start, true, limits::kLongSearch, end);
  }
  if (finding == Finding::kUnknown) pool_.budget().Cut(phase);
  if (finding == Finding::kUnknown && is_step) {
    undecided_.insert(start);
    return false;
  }
  const bool is_live = finding != Finding::kNothing;
  live_.Reach(start) = is_live ? kLive : kDead;
  return is_live;
}

bool LanguageSearch::IsGoal(NodeId id) {
  return pool_.node(id).nullable || live_.Reach(id) == kLive || !pool_.node(id).searches;
}

// Searches for a text in at most `limit` states, until all work exceeds `end`: for the shortest one, or depth first for any.
LanguageSearch::Finding LanguageSearch::Explore(NodeId start, bool is_deep, size_t limit, uint64_t end) {
  struct Step {
    NodeId node;
    size_t from;
  };
  std::vector<Step> steps{{start, 0}};
  std::deque<size_t> open{0};
  std::unordered_set<NodeId> seen{start};
  for (size_t states = 0; !open.empty();) {
    const size_t at = is_deep ? open.back() : open.front();
    is_deep ? open.pop_back() : open.pop_front();
    const NodeId node = steps[at].node;
    if (IsGoal(node)) {
      for (size_t step = at;; step = steps[step].from) {
        live_.Reach(steps[step].node) = kLive;
        if (step == 0) return Finding::kText;
      }
    }
    if (live_.Reach(node) == kDead) continue;
    if (++states > limit || pool_.budget().spent() > end) return Finding::kUnknown;
    CountState();
    for (const Edge& edge : derivatives_.AllOf(node)) {
      if (!seen.insert(edge.target).second) continue;
      open.push_back(steps.size());
      steps.push_back({edge.target, at});
    }
  }
  for (const Step& step : steps) live_.Reach(step.node) = kDead;
  return Finding::kNothing;
}

void LanguageSearch::CountState() {
  searched_++;
  pool_.budget().Spend(30);
}

// Returns a superset of the language, with "any number" in place of large counts, because intersections of those have few states.
NodeId LanguageSearch::Relaxed(NodeId node) {
  const auto known = relaxed_.find(node);
  if (known != relaxed_.end()) return known->second;
  const Node given = pool_.node(node);
  NodeId result = node;
  if (given.kind == NodeKind::kRepeat) {
    const bool is_large = given.min > limits::kSmallCount || (given.max != kUnlimited && given.max > limits::kSmallCount);
    const NodeId inner = Relaxed(given.a);
    result = is_large ? pool_.Repeat(inner, std::min(given.min, 1u), kUnlimited) : pool_.Repeat(inner, given.min, given.max);
  } else if (given.kind == NodeKind::kConcat) {
    std::vector<NodeId> parts;
    NodeId rest = node;
    for (; pool_.node(rest).kind == NodeKind::kConcat; rest = pool_.node(rest).b) parts.push_back(pool_.node(rest).a);
    result = Relaxed(rest);
    for (size_t i = parts.size(); i-- > 0;) result = pool_.Concat(Relaxed(parts[i]), result);
  } else if (given.kind == NodeKind::kAlternate || given.kind == NodeKind::kAnd) {
    std::vector<NodeId> children = pool_.ChildrenOf(node);
    for (NodeId& child : children) child = Relaxed(child);
    result = pool_.MergeList(given.kind, std::move(children));
  }
  return relaxed_[node] = result;
}

uint64_t LanguageSearch::CountTexts(NodeId start, uint64_t cap, bool is_sure) {
  const uint64_t end = pool_.budget().EndOf(is_bound_ ? limits::kCountWork : Budget::kUnbounded);
  // Breadth first over (state, number of texts that lead here). A language with a cycle never ends, and reaches the cap.
  std::unordered_map<NodeId, uint64_t> level{{start, 1}};
  uint64_t count = 0;
  for (size_t depth = 0; !level.empty() && depth < limits::kCountedLength; depth++) {
    std::unordered_map<NodeId, uint64_t> next_level;
    for (const auto& [node, ways] : level) {
      if (pool_.node(node).nullable) count = std::min(cap, count + ways);
      if (count >= cap) return cap;
      if (pool_.budget().spent() > end) return is_sure ? count : cap;
      CountState();
      for (const Edge& edge : std::vector<Edge>(derivatives_.AllOf(node)))
        if (IsLive(edge.target)) {
          uint64_t& sum = next_level[edge.target];
          sum = std::min<uint64_t>(cap, sum + ways * edge.bytes.Count());
        }
    }
    if (next_level.size() > limits::kCountedStates) return is_sure ? count : cap;
    level = std::move(next_level);
  }
  return level.empty() || is_sure ? count : cap;
}

}  // namespace onpolicy::grammar
