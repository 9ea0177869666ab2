// Keeps alternations small: of two parts where one holds all texts of the other, the larger stays; counts that overlap
// become one. Without this, the states of an ambiguous expression with counts multiply.
#include <algorithm>

#include "regex/pool.h"

namespace onpolicy::grammar {

// So many questions of one part about another are worth asking for one list.
static constexpr size_t kMaxQuestions = 4096;
// A question goes this deep, and takes so many steps.
static constexpr unsigned kMaxDepth = 24;
static constexpr unsigned kMaxSteps = 100;
// What the questions of one list may cost in all.
static constexpr uint64_t kListWork = 30000;

RegexPool::Split RegexPool::SplitHead(NodeId node) const {
  if (node == kEpsilon) return {kEpsilon, kEpsilon};
  if (nodes_[node].kind == Kind::kConcat) return {nodes_[node].a, nodes_[node].b};
  return {node, kEpsilon};
}

// Whether every text of `part` is one of `whole`, as far as their forms tell: false is no proof.
bool RegexPool::Contains(NodeId whole, NodeId part, unsigned depth) {
  work_ += 10;
  if (++questions_ > kMaxSteps) return false;
  if (whole == part || (whole == kAnyText && !nodes_[part].tagged)) return true;
  const Node& outer = nodes_[whole];
  const Node& inner = nodes_[part];
  if (depth == 0 || outer.tagged != inner.tagged || (inner.nullable && !outer.nullable)) return false;
  if (part == kEpsilon) return outer.nullable;
  if (whole == kEpsilon || whole == kNothing) return false;
  if (outer.kind == Kind::kAlternate) {
    for (uint32_t i = outer.min; i < outer.max && questions_ <= kMaxSteps; i++)
      if (Contains(children_[i], part, depth - 1)) return true;
    return false;
  }
  const Split a = SplitHead(whole), b = SplitHead(part);
  const Node& head = nodes_[a.head];
  const Node& other = nodes_[b.head];
  const auto takes = [&](NodeId one, NodeId two) {
    return one == two || (nodes_[one].kind == Kind::kBytes && nodes_[two].kind == Kind::kBytes &&
                          (sets_[nodes_[two].min] & ~sets_[nodes_[one].min]).IsEmpty());
  };
  if (takes(a.head, b.head) && Contains(a.tail, b.tail, depth - 1)) return true;
  if (head.kind == Kind::kRepeat) {
    const bool repeats = other.kind == Kind::kRepeat;
    const NodeId item = repeats ? other.a : b.head;
    const uint32_t least = repeats ? other.min : 1, most = repeats ? other.max : 1;
    if (takes(head.a, item)) {
      if (head.min <= least && head.max >= most && Contains(a.tail, b.tail, depth - 1)) return true;
      if (head.min == 0 && head.max == kUnlimited && Contains(whole, b.tail, depth - 1)) return true;
    }
  }
  return head.nullable && a.head != kEpsilon && Contains(a.tail, part, depth - 1);
}

// One expression for two that differ in the range of one count, where the ranges meet; else kNothing.
NodeId RegexPool::JoinRanges(NodeId one, NodeId two) {
  std::vector<NodeId> shared;
  while (true) {
    const Split a = SplitHead(one), b = SplitHead(two);
    if (a.head == b.head && a.head != kEpsilon) {
      shared.push_back(a.head);
      one = a.tail;
      two = b.tail;
      continue;
    }
    const Node first = nodes_[a.head], second = nodes_[b.head];
    if (a.tail != b.tail || first.kind != Kind::kRepeat || second.kind != Kind::kRepeat || first.a != second.a ||
        std::max(first.min, second.min) > std::min<uint64_t>(first.max, second.max) + 1ull)
      return kNothing;
    NodeId result = Concat(Repeat(first.a, std::min(first.min, second.min), std::max(first.max, second.max)), a.tail);
    for (size_t i = shared.size(); i-- > 0;) result = Concat(shared[i], result);
    return result;
  }
}

// Whether each part ends in a tag that no other one has: then none holds texts of another.
bool RegexPool::HaveTagsOfTheirOwn(const std::vector<NodeId>& parts) const {
  std::vector<uint32_t> tags;
  tags.reserve(parts.size());
  for (NodeId part : parts) {
    while (nodes_[part].kind == Kind::kConcat) part = nodes_[part].b;
    if (nodes_[part].kind != Kind::kTag) return false;
    tags.push_back(nodes_[part].a);
  }
  std::sort(tags.begin(), tags.end());
  return std::adjacent_find(tags.begin(), tags.end()) == tags.end();
}

// Drops from the parts of an alternation those that others hold.
void RegexPool::Absorb(std::vector<NodeId>* parts) {
  const auto repeats = [&](NodeId node) { return nodes_[node].repeats; };
  size_t loops = static_cast<size_t>(std::count_if(parts->begin(), parts->end(), repeats));
  if (loops == 0 || parts->size() < 2 || loops * parts->size() > kMaxQuestions) return;
  work_ += 2 * parts->size();
  if (HaveTagsOfTheirOwn(*parts)) return;
  work_ += loops * parts->size();
  const uint64_t last_work = std::min(work_ + kListWork, last_simplified_);
  for (size_t i = 0; i < parts->size(); i++) {
    if (!repeats((*parts)[i])) continue;
    if (work_ > last_work) return;
    for (size_t j = 0; j < parts->size(); j++) {
      if (i == j) continue;
      NodeId joined = kNothing;
      questions_ = 0;
      if (Contains((*parts)[i], (*parts)[j], kMaxDepth)) {
        joined = (*parts)[i];
      } else if (j > i && repeats((*parts)[j])) {
        joined = JoinRanges((*parts)[i], (*parts)[j]);
      }
      if (joined == kNothing) continue;
      // A larger part asks all the others again.
      const bool again = joined != (*parts)[i];
      (*parts)[i] = joined;
      parts->erase(parts->begin() + static_cast<std::ptrdiff_t>(j));
      if (j < i) i--;
      j = again ? static_cast<size_t>(-1) : j - 1;
    }
  }
}

}  // namespace onpolicy::grammar
