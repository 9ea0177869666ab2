// Simplifies by local rules: neutral and dominant parts, nested lists, right-nested concatenations.
#include "grammar/regex/expressions.h"

#include <algorithm>

namespace onpolicy::grammar {

Expressions::Expressions() {
  Intern({NodeKind::kNothing});
  Intern({NodeKind::kEpsilon, true});
  // kAnyText is node 2, before the byte set that it repeats: it is a repetition of node 3.
  Intern({NodeKind::kRepeat, true, false, false, true, false, 3, 0, 0, kUnlimited});
  Bytes(ByteSet::All());
}

NodeId Expressions::Literal(std::string_view text) {
  NodeId result = kEpsilon;
  for (size_t i = text.size(); i-- > 0;) result = Concat(Bytes(ByteSet::Of(text.substr(i, 1))), result);
  return result;
}

// Makes a concatenation whose left side is not a concatenation.
NodeId Expressions::Prepend(NodeId first, NodeId second) {
  const Node& head = node(first);
  const Node& tail = node(second);
  return Intern({NodeKind::kConcat, head.nullable && tail.nullable, head.searches || tail.searches, head.tagged || tail.tagged,
                 head.repeats || tail.repeats, head.counts || tail.counts, first, second});
}

NodeId Expressions::Concat(NodeId first, NodeId second) {
  if (first == kNothing || second == kNothing) return kNothing;
  if (first == kEpsilon) return second;
  if (second == kEpsilon) return first;
  if (first == kAnyText && second == kAnyText) return kAnyText;
  // Right-nested: the left side of a concatenation is never itself one.
  if (node(first).kind != NodeKind::kConcat) return Prepend(first, second);
  parts_.clear();
  for (; node(first).kind == NodeKind::kConcat; first = node(first).b) parts_.push_back(node(first).a);
  NodeId result = Prepend(first, second);
  for (size_t i = parts_.size(); i-- > 0;) result = Prepend(parts_[i], result);
  return result;
}

NodeId Expressions::Concat(std::span<const NodeId> parts, NodeId last) {
  for (size_t i = parts.size(); i-- > 0;) last = Concat(parts[i], last);
  return last;
}

NodeId Expressions::MergeList(NodeKind kind, std::vector<NodeId> parts) {
  const bool is_and = kind == NodeKind::kAnd;
  const NodeId neutral = is_and ? kAnyText : kNothing;
  const NodeId dominant = is_and ? kNothing : kAnyText;
  std::vector<NodeId> flat;
  budget_.Spend(4 + parts.size());
  bool has_bytes = false;
  ByteSet bytes = is_and ? ByteSet::All() : ByteSet{};
  for (NodeId part : parts) {
    const auto take = [&](NodeId child) {
      if (node(child).kind == NodeKind::kBytes) {
        const ByteSet& set = set_of(node(child));
        bytes = is_and ? bytes & set : bytes | set;
        has_bytes = true;
      } else {
        flat.push_back(child);
      }
    };
    if (part == neutral) continue;
    if (part == dominant) return dominant;
    if (node(part).kind == kind) {
      const std::vector<NodeId> children = ChildrenOf(part);
      budget_.Spend(children.size());
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
  budget_.Spend(2 * flat.size());
  std::sort(flat.begin(), flat.end());
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  if (!is_and) {
    DropSubsets(&flat);
    std::sort(flat.begin(), flat.end());
  }
  if (flat.empty()) return neutral;
  if (flat.size() == 1) return flat[0];
  if (NodeId met; is_and && flat.size() == 2 && MeetCounts(flat[0], flat[1], &met)) return met;
  Node made{kind, is_and, is_and};
  for (NodeId child : flat) {
    const Node& inner = node(child);
    made.nullable = is_and ? made.nullable && inner.nullable : made.nullable || inner.nullable;
    made.searches = made.searches || inner.searches;
    made.tagged = made.tagged || inner.tagged;
    made.repeats = made.repeats || inner.repeats;
    made.counts = made.counts || inner.counts;
    if (inner.kind == NodeKind::kNot && std::binary_search(flat.begin(), flat.end(), inner.a)) return dominant;
  }
  return Intern(made, &flat);
}

NodeId Expressions::Not(NodeId inner) {
  if (inner == kNothing) return kAnyText;
  if (inner == kAnyText) return kNothing;
  const Node& negated = node(inner);
  if (negated.kind == NodeKind::kNot) return negated.a;
  return Intern({NodeKind::kNot, !negated.nullable, true, false, false, false, inner});
}

NodeId Expressions::Repeat(NodeId inner, uint32_t min, uint32_t max) {
  if (max == 0 || inner == kEpsilon) return kEpsilon;
  if (inner == kNothing) return min == 0 ? kEpsilon : kNothing;
  if (node(inner).nullable) min = 0;
  if (min == 1 && max == 1) return inner;
  const Node& item = node(inner);
  if (item.kind == NodeKind::kRepeat && item.max == kUnlimited && item.min <= 1)
    return Repeat(item.a, item.min == 0 ? 0 : min, kUnlimited);
  const bool counts = item.counts || min > 1 || (max > 1 && max != kUnlimited);
  return Intern({NodeKind::kRepeat, min == 0, item.searches, item.tagged, true, counts, inner, 0, min, max});
}

void Expressions::CopyFrom(const Expressions& other) {
  NodeTable::CopyFrom(other);
  characters_ = other.characters_;
  any_character_ = other.any_character_;
  any_plain_ = other.any_plain_;
  text_table_ = other.text_table_;
}

NodeId Expressions::Tag(uint32_t tag) { return Intern({NodeKind::kTag, true, false, true, false, false, tag}); }

Automaton* Expressions::Own(std::unique_ptr<Automaton> automaton) {
  automata_.push_back(std::move(automaton));
  return automata_.back().get();
}

NodeId Expressions::Leaf(Automaton* automaton, uint32_t state) {
  if (state == Automaton::kDead) return kNothing;
  const bool is_tagged = automaton->IsTagged();
  return Intern({NodeKind::kLeaf, automaton->Accepts(state), !is_tagged, is_tagged, false, false, LeafOf(automaton), state});
}

NodeId Expressions::RestOf(const Node& repeat) {
  return Repeat(repeat.a, repeat.min == 0 ? 0 : repeat.min - 1, repeat.max == kUnlimited ? kUnlimited : repeat.max - 1);
}

}  // namespace onpolicy::grammar
