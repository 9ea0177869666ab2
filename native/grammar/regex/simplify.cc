// Simplifies alternations: drops parts that are subsets of others, and joins overlapping ranges of counts. Without this, the states of an
// ambiguous expression with counts multiply.
#include <algorithm>
#include <bit>
#include <utility>

#include "grammar/regex/expressions.h"

namespace onpolicy::grammar {

// Returns true if the syntax shows that every text of `part` is one of `whole`. False proves nothing.
bool Expressions::IsSubset(NodeId part, NodeId whole, unsigned depth) {
  budget_.Spend(3);
  if (subset_steps_.IsSpent()) return false;
  subset_steps_.Spend();
  if (whole == part || (whole == kAnyText && !node(part).tagged)) return true;
  const Node& outer = node(whole);
  const Node& inner = node(part);
  if (text_table_ && whole == text_table_->text && IsText(part)) return true;
  if (depth == 0 || outer.tagged != inner.tagged || (inner.nullable && !outer.nullable)) return false;
  if (part == kEpsilon) return outer.nullable;
  if (whole == kEpsilon || whole == kNothing) return false;
  if (outer.kind == NodeKind::kAlternate) {
    for (uint32_t i = outer.min; i < outer.max && !subset_steps_.IsSpent(); i++)
      if (IsSubset(part, child(i), depth - 1)) return true;
    return false;
  }
  const Split a = SplitHead(whole), b = SplitHead(part);
  const Node& head = node(a.head);
  const Node& other = node(b.head);
  const auto takes = [&](NodeId one, NodeId two) {
    return one == two || (node(one).kind == NodeKind::kBytes && node(two).kind == NodeKind::kBytes &&
                          (set_of(node(two)) & ~set_of(node(one))).IsEmpty());
  };
  if (takes(a.head, b.head) && IsSubset(b.tail, a.tail, depth - 1)) return true;
  if (head.kind == NodeKind::kRepeat) {
    const bool repeats = other.kind == NodeKind::kRepeat;
    const NodeId item = repeats ? other.a : b.head;
    const uint32_t least = repeats ? other.min : 1, most = repeats ? other.max : 1;
    if (takes(head.a, item)) {
      if (head.min <= least && head.max >= most && IsSubset(b.tail, a.tail, depth - 1)) return true;
      if (head.min == 0 && head.max == kUnlimited && IsSubset(b.tail, whole, depth - 1)) return true;
    }
  }
  return head.nullable && a.head != kEpsilon && IsSubset(part, a.tail, depth - 1);
}

uint64_t Expressions::TextStates(NodeId id, unsigned from) {
  const uint64_t key = uint64_t{id} << 8 | from;
  if (const auto known = text_states_.find(key); known != text_states_.end()) return known->second;
  budget_.Spend(10);
  const uint64_t states = FindTextStates(node(id), from);
  text_states_.emplace(key, states);
  return states;
}

uint64_t Expressions::FindTextStates(const Node& node, unsigned from) {
  const auto after = [&](NodeId part, uint64_t states) {
    uint64_t all = 0;
    for (; states != 0; states &= states - 1) {
      const uint64_t more = TextStates(part, static_cast<unsigned>(std::countr_zero(states)));
      if (more == kNoText) return kNoText;
      all |= more;
    }
    return all;
  };
  uint64_t states = uint64_t{1} << from;
  switch (node.kind) {
    case NodeKind::kNothing:
      return 0;
    case NodeKind::kEpsilon:
      return states;
    case NodeKind::kBytes: {
      states = 0;
      set_of(node).ForEach([&](unsigned byte) {
        const uint8_t next = text_table_->next[from][byte];
        states |= next == TextTable::kDead ? kNoText : uint64_t{1} << next;
      });
      return states;
    }
    case NodeKind::kConcat: {
      for (NodeId rest = node.a, tail = node.b;;) {
        states = after(rest, states);
        if (states == kNoText || tail == kEpsilon) return states;
        const Split next = SplitHead(tail);
        rest = next.head;
        tail = next.tail;
      }
    }
    case NodeKind::kAlternate: {
      states = 0;
      for (uint32_t i = node.min; i < node.max && states != kNoText; i++) {
        const uint64_t more = TextStates(child(i), from);
        states = more == kNoText ? kNoText : states | more;
      }
      return states;
    }
    case NodeKind::kRepeat:
      for (uint64_t before = 0; before != states && states != kNoText;) {
        before = states;
        const uint64_t more = after(node.a, states);
        states = more == kNoText ? kNoText : states | more;
      }
      return states;
    default:
      return kNoText;
  }
}

// Returns one expression for two that differ in the range of one count, if the ranges meet; else kNothing.
NodeId Expressions::JoinRanges(NodeId one, NodeId two) {
  std::vector<NodeId> shared;
  while (true) {
    const Split a = SplitHead(one), b = SplitHead(two);
    if (a.head == b.head && a.head != kEpsilon) {
      shared.push_back(a.head);
      one = a.tail;
      two = b.tail;
      continue;
    }
    const Node first = node(a.head), second = node(b.head);
    if (a.tail != b.tail || first.kind != NodeKind::kRepeat || second.kind != NodeKind::kRepeat || first.a != second.a ||
        std::max(first.min, second.min) > std::min<uint64_t>(first.max, second.max) + 1ull)
      return kNothing;
    return Concat(shared, Concat(Repeat(first.a, std::min(first.min, second.min), std::max(first.max, second.max)), a.tail));
  }
}

// Intersects "n characters" and "n of a class of characters" to counts of the class that satisfy both. Returns false for other expressions.
bool Expressions::MeetCounts(NodeId one, NodeId two, NodeId* met) {
  if (any_character_ == kNothing) return false;
  for (const auto& [any, some] : {std::pair{one, two}, std::pair{two, one}}) {
    const Node count = node(any), other = node(some);
    if (count.kind != NodeKind::kRepeat || other.kind != NodeKind::kRepeat || count.a != any_character_) continue;
    if (other.a == any_character_ || !characters_.contains(other.a)) continue;
    const uint32_t min = std::max(count.min, other.min), max = std::min(count.max, other.max);
    *met = min > max ? kNothing : Repeat(other.a, min, max);
    return true;
  }
  return false;
}

// Drops the parts of an alternation that are subsets of others, and joins counts.
void Expressions::DropSubsets(std::vector<NodeId>* parts) {
  const auto repeats = [&](NodeId part) { return node(part).repeats; };
  size_t loops = static_cast<size_t>(std::count_if(parts->begin(), parts->end(), repeats));
  if (loops == 0 || parts->size() < 2 || loops * parts->size() > limits::kAlternationPairs) return;
  budget_.Spend(parts->size());
  const uint64_t end = std::min(budget_.EndOf(limits::kAlternationWork), budget_.end(Phase::kDerivative));
  for (size_t i = 0; i < parts->size(); i++) {
    if (!repeats((*parts)[i])) continue;
    if (budget_.spent() > end) return;
    for (size_t j = 0; j < parts->size(); j++) {
      if (i == j) continue;
      NodeId joined = kNothing;
      subset_steps_ = Allowance(limits::kSubsetSteps);
      if (IsSubset((*parts)[j], (*parts)[i], limits::kSubsetDepth)) {
        joined = (*parts)[i];
      } else if (j > i && repeats((*parts)[j])) {
        joined = JoinRanges((*parts)[i], (*parts)[j]);
      }
      if (joined == kNothing) continue;
      // Compares a larger part with all others again.
      const bool again = joined != (*parts)[i];
      (*parts)[i] = joined;
      parts->erase(parts->begin() + static_cast<std::ptrdiff_t>(j));
      if (j < i) i--;
      j = again ? static_cast<size_t>(-1) : j - 1;
    }
  }
}

}  // namespace onpolicy::grammar
