// Steps of the lazy automaton: one derivative answers for all bytes that lead to the same state, and is made when one of
// them is first asked for. A text then costs only the classes of bytes that it goes through.
#include <algorithm>

#include "grammar/regex-pool.h"

namespace onpolicy::grammar {

// What an expression becomes after `byte`. Narrows `same` to bytes after which it becomes just that.
NodeId RegexPool::Derive(NodeId id, uint8_t byte, ByteSet* same) {
  const Node node = nodes_[id];
  work_ += 2;
  // Classes of characters stand in many expressions: their edges are kept.
  const bool is_plain = node.kind == Kind::kAlternate && !node.repeats && !node.searches && !node.tagged;
  if (is_plain || node.kind == Kind::kLeaf || edges_[id]) {
    ByteSet covered;
    for (const Edge& edge : Edges(id)) {
      if (edge.bytes.Has(byte)) {
        *same = *same & edge.bytes;
        return edge.target;
      }
      covered = covered | edge.bytes;
    }
    *same = *same & ~covered;
    return kNothing;
  }
  switch (node.kind) {
    case Kind::kBytes: {
      const ByteSet& set = sets_[node.min];
      *same = *same & (set.Has(byte) ? set : ~set);
      return set.Has(byte) ? kEpsilon : kNothing;
    }
    case Kind::kConcat: {
      // A run of nullable parts opens several beginnings; walked in a loop because such runs may be long.
      std::vector<NodeId> options;
      for (NodeId rest = id;;) {
        const Split split = SplitHead(rest);
        const NodeId target = Derive(split.head, byte, same);
        if (target != kNothing) options.push_back(Concat(target, split.tail));
        if (split.tail == kEpsilon || !nodes_[split.head].nullable) break;
        rest = split.tail;
      }
      return options.size() == 1 ? options[0] : Alternate(std::move(options));
    }
    case Kind::kAlternate: {
      std::vector<NodeId> options;
      for (uint32_t i = node.min; i < node.max; i++)
        if (const NodeId target = Derive(children_[i], byte, same); target != kNothing) options.push_back(target);
      return options.size() == 1 ? options[0] : Alternate(std::move(options));
    }
    case Kind::kAnd: {
      std::vector<NodeId> parts;
      for (uint32_t i = node.min; i < node.max; i++) {
        parts.push_back(Derive(children_[i], byte, same));
        if (parts.back() == kNothing) return kNothing;
      }
      return And(std::move(parts));
    }
    case Kind::kNot:
      return Not(Derive(node.a, byte, same));
    case Kind::kRepeat: {
      const NodeId target = Derive(node.a, byte, same);
      return target == kNothing ? kNothing : Concat(target, RestOf(node));
    }
    default:
      return kNothing;
  }
}

NodeId RegexPool::RestOf(const Node& repeat) {
  return Repeat(repeat.a, repeat.min == 0 ? 0 : repeat.min - 1, repeat.max == kUnlimited ? kUnlimited : repeat.max - 1);
}

NodeId* RegexPool::MakeRow(NodeId state) {
  work_ += 40;
  StateRow& row = rows_.emplace_back();
  std::fill(std::begin(row.next), std::end(row.next), kUnasked);
  row_of_[state] = &row;
  return row.next;
}

NodeId RegexPool::Ask(NodeId state, uint8_t byte) {
  work_ += 20;
  ByteSet same = ByteSet::All();
  const NodeId target = Derive(state, byte, &same);
  const NodeId entry = !IsLive(target) ? kNothing : target | (IsAccepting(target) ? kAcceptBit : 0);
  NodeId* const next = row_of_[state]->next;
  same.ForEach([&](unsigned like) { next[like] = entry; });
  return entry;
}

const ByteSet& RegexPool::FirstBytes(NodeId state) {
  Row(state);
  StateRow& row = *row_of_[state];
  if (row.is_whole) return row.first;
  for (unsigned byte = 0; byte < 256; byte++)
    if (Entry(state, static_cast<uint8_t>(byte)) != kNothing) row.first.Add(byte);
  row.is_whole = true;
  return row.first;
}

bool RegexPool::HasNext(NodeId state) {
  const Node& node = nodes_[state];
  if (node.searches) {
    if (!node.nullable) return IsLive(state);
    for (unsigned byte = 0; byte < 256; byte++)
      if (Entry(state, static_cast<uint8_t>(byte)) != kNothing) return true;
    return false;
  }
  switch (node.kind) {
    case Kind::kBytes:
    case Kind::kRepeat:
      return true;
    case Kind::kConcat:
      return HasNext(node.a) || HasNext(node.b);
    case Kind::kAlternate:
      for (uint32_t i = node.min; i < node.max; i++)
        if (HasNext(children_[i])) return true;
      return false;
    default:
      return false;
  }
}

}  // namespace onpolicy::grammar
