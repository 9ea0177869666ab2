// Steps of the lazy automaton: one derivative answers for all bytes that lead to the same state, and is made when one of
// them is first asked for. A text then costs only the classes of bytes that it goes through.
#include <algorithm>
#include <utility>

#include "regex/pool.h"

namespace onpolicy::grammar {

// So many alternatives an expression may come to have.
static constexpr size_t kMaxReadings = 48;

// What the lists of one step may cost to be made smaller; longer ones stay as they are.
static constexpr uint64_t kSimplifyWork = 120000;
// The same once a mask has no work left: a state may have 150 different bytes, each a step of its own. The step after one of
// them makes up for it.
static constexpr uint64_t kLateSimplifyWork = 12000;

// What an expression becomes after `byte`. Narrows `same` to bytes after which it becomes just that. Counts in counts make
// expressions that hold the same one many times: it is asked once.
NodeId RegexPool::Derive(NodeId id, uint8_t byte, ByteSet* same) {
  const uint64_t step = 2 * current_step_ + (exact_ > 0);
  if (derived_[id].step == step) return derived_[id].target;
  const NodeId target = DeriveAnew(id, byte, same);
  derived_[id] = {step, target};
  return target;
}

NodeId RegexPool::DeriveAnew(NodeId id, uint8_t byte, ByteSet* same) {
  const Node node = nodes_[id];
  work_ += 5;
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
      return Readings(std::move(options), 0);
    }
    case Kind::kAlternate: {
      std::vector<NodeId> options;
      for (uint32_t i = node.min; i < node.max; i++)
        if (const NodeId target = Derive(children_[i], byte, same); target != kNothing) options.push_back(target);
      return Readings(std::move(options), node.max - node.min);
    }
    case Kind::kAnd: {
      std::vector<NodeId> parts;
      exact_++;
      for (uint32_t i = node.min; i < node.max; i++) {
        parts.push_back(Derive(children_[i], byte, same));
        if (parts.back() == kNothing) break;
      }
      exact_--;
      return And(std::move(parts));
    }
    case Kind::kNot: {
      exact_++;
      const NodeId target = Derive(node.a, byte, same);
      exact_--;
      return Not(target);
    }
    case Kind::kRepeat: {
      const NodeId target = Derive(node.a, byte, same);
      return target == kNothing ? kNothing : Concat(target, RestOf(node));
    }
    default:
      return kNothing;
  }
}

// The alternatives that a step leads to, where there were `count` of them. Expressions with counts in counts may come to
// thousands of them, and then lose those that were made last, which have the least left to count.
NodeId RegexPool::Readings(std::vector<NodeId> options, size_t count) {
  if (options.size() == 1) return options[0];
  const NodeId all = Alternate(std::move(options));
  const Node& node = nodes_[all];
  const size_t most = std::max(count, kMaxReadings);
  if (exact_ > 0 || node.searches || node.kind != Kind::kAlternate || node.max - node.min <= most) return all;
  is_exact_ = false;
  return Alternate({children_.begin() + node.min, children_.begin() + node.min + static_cast<std::ptrdiff_t>(most)});
}

NodeId RegexPool::RestOf(const Node& repeat) {
  return Repeat(repeat.a, repeat.min == 0 ? 0 : repeat.min - 1, repeat.max == kUnlimited ? kUnlimited : repeat.max - 1);
}

NodeId* RegexPool::MakeRow(NodeId state) {
  work_ += 40;
  if (row_count_ % kRowsPerBlock == 0) rows_.push_back(std::unique_ptr<StateRow[]>(new StateRow[kRowsPerBlock]));
  StateRow& row = rows_.back()[row_count_++ % kRowsPerBlock];
  std::fill(std::begin(row.next), std::end(row.next), kUnasked);
  row_of_[state] = &row;
  return row.next;
}

NodeId RegexPool::Ask(NodeId state, uint8_t byte) {
  work_ += 20;
  ByteSet same = ByteSet::All();
  // A leaf's automaton may step through this pool, too.
  const uint64_t outer_step = std::exchange(current_step_, ++steps_);
  const uint64_t outer_work = std::exchange(last_simplified_, work_ + (IsStopped() ? kLateSimplifyWork : kSimplifyWork));
  const NodeId target = Derive(state, byte, &same);
  current_step_ = outer_step;
  last_simplified_ = outer_work;
  // Without work left there is no search. What is skipped is asked again the next time.
  if (IsStopped() && nodes_[target].searches && !nodes_[target].nullable && live_[target] == 0) return kNothing;
  const NodeId entry = !IsLive(target) ? kNothing : target | (IsAccepting(target) ? kAcceptBit : 0);
  NodeId* const next = row_of_[state]->next;
  same.ForEach([&](unsigned like) { next[like] = entry; });
  return entry;
}

const ByteSet& RegexPool::FirstBytes(NodeId state) {
  Row(state);
  StateRow& row = *row_of_[state];
  if (row.is_whole) return row.first;
  static const ByteSet all = ByteSet::All();
  for (unsigned byte = 0; byte < 256; byte++) {
    if (Entry(state, static_cast<uint8_t>(byte)) != kNothing) row.first.Add(byte);
    if (IsStopped()) return all;
  }
  row.is_whole = true;
  return row.first;
}

bool RegexPool::HasNext(NodeId state) {
  const Node& node = nodes_[state];
  if (node.searches) {
    if (!node.nullable) return IsLive(state);
    const uint64_t last_search = std::exchange(last_search_, UINT64_MAX);
    bool has_next = false;
    for (unsigned byte = 0; byte < 256 && !has_next; byte++)
      has_next = Entry(state, static_cast<uint8_t>(byte)) != kNothing;
    last_search_ = last_search;
    return has_next;
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
