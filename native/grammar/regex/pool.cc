// Computes rows of the lazy automaton: one derivative fills the entries of all bytes that share it.
#include "grammar/regex/pool.h"

#include <algorithm>

namespace onpolicy::grammar {

void RegexPool::Bind() {
  search_.Bind();
  budget_.Begin(Phase::kCompile, Budget::kUnbounded);
  budget_.Begin(Phase::kShapes, Budget::kUnbounded);
}

void RegexPool::BeginStep(uint64_t work) {
  budget_.Begin(Phase::kStep, work);
  budget_.Begin(Phase::kSearch, limits::kSearchWork);
}

const std::vector<uint32_t>& RegexPool::AcceptedTags(NodeId id) {
  static const std::vector<uint32_t> none, first{0};
  if (!node(id).nullable) return none;
  if (!node(id).tagged) return first;
  if (const auto& known = tags_.Reach(id)) return *known;
  if (node(id).kind == NodeKind::kLeaf) {
    tags_[id] = std::make_unique<std::vector<uint32_t>>(1, automaton_of(node(id))->TagOf(node(id).b));
    return *tags_[id];
  }
  // Only alternatives of a merged terminal have tags, at their end.
  std::vector<uint32_t> tags;
  std::vector<NodeId> options{id};
  if (node(id).kind == NodeKind::kAlternate) options = ChildrenOf(id);
  for (NodeId option : options) {
    bool nullable = true;
    while (node(option).kind == NodeKind::kConcat && nullable) {
      nullable = node(node(option).a).nullable;
      option = node(option).b;
    }
    if (nullable && node(option).kind == NodeKind::kTag) tags.push_back(node(option).a);
    if (nullable && node(option).kind == NodeKind::kAlternate)  // a factored tail
      for (uint32_t tag : AcceptedTags(option)) tags.push_back(tag);
  }
  std::sort(tags.begin(), tags.end());
  tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
  tags_[id] = std::make_unique<std::vector<uint32_t>>(std::move(tags));
  return *tags_[id];
}

StateRow* RegexPool::MakeRow(NodeId state) {
  budget_.Spend(40);
  if (row_count_ % kRowsPerBlock == 0) rows_.push_back(std::unique_ptr<StateRow[]>(new StateRow[kRowsPerBlock]));
  StateRow& row = rows_.back()[row_count_++ % kRowsPerBlock];
  // Most states take few bytes, so that their first bytes show without derivatives that the others lead nowhere.
  row.has_first = !node(state).searches;
  if (row.has_first) row.first = FirstOf(state);
  std::fill(std::begin(row.next), std::end(row.next), row.has_first ? kNothing : kUnasked);
  row.first.ForEach([&](unsigned byte) { row.next[byte] = kUnasked; });
  return row_of_[state] = &row;
}

NodeId RegexPool::Compute(NodeId state, uint8_t byte) {
  budget_.Spend(20);
  ByteSet same = ByteSet::All();
  const NodeId target = derivatives_.Of(state, byte, &same);
  // A step whose work limit was reached does not search. The search is made in a later step.
  const Node& reached = node(target);
  if (budget_.IsSpent(Phase::kStep) && reached.searches && !reached.nullable && !search_.IsKnown(target)) return kNothing;
  const bool is_live = search_.IsLive(target);
  const NodeId entry = !is_live ? kNothing : target | (IsAccepting(target) ? kAcceptBit : 0);
  StateRow& row = *row_of_[state];
  row.is_cut = row.is_cut || (!is_live && target != kNothing && !search_.IsKnown(target));
  same.ForEach([&](unsigned like) { row.next[like] = entry; });
  return entry;
}

const ByteSet& RegexPool::FirstBytes(NodeId state) {
  Row(state);
  StateRow& row = *row_of_[state];
  if (row.is_cut) budget_.Cut(Phase::kSearch);
  if (row.has_first) return row.first;
  static const ByteSet all = ByteSet::All();
  for (unsigned byte = 0; byte < 256; byte++) {
    if (Entry(state, static_cast<uint8_t>(byte)) != kNothing) row.first.Add(byte);
    if (budget_.IsSpent(Phase::kStep)) return all;
  }
  if (row.first.IsEmpty() && !IsAccepting(state)) Unstick(state, &row);
  row.has_first = true;
  return row.first;
}

// Keeps an entered state from being a dead end: continues with bytes that longer searches find, else with bytes that no search could
// decide.
void RegexPool::Unstick(NodeId state, StateRow* row) {
  struct Way {
    ByteSet bytes;
    NodeId target;
  };
  std::vector<Way> ways;
  ByteSet left = ByteSet::All();
  for (unsigned byte = 0; byte < 256; byte++) {
    if (!left.Has(byte)) continue;
    ByteSet same = ByteSet::All();
    const NodeId target = derivatives_.Of(state, static_cast<uint8_t>(byte), &same);
    if (target != kNothing) ways.push_back({same & left, target});
    left = left & ~same;
  }
  const uint64_t end = budget_.EndOf(limits::kStuckWork);
  const auto allow = [&](const Way& way) {
    way.bytes.ForEach([&](unsigned byte) {
      row->next[byte] = way.target | (IsAccepting(way.target) ? kAcceptBit : 0);
      row->first.Add(byte);
    });
  };
  for (const Way& way : ways)
    if (search_.IsLiveIn(way.target, end)) allow(way);
  if (!row->first.IsEmpty()) return;
  for (const Way& way : ways)
    if (!search_.IsKnown(way.target)) allow(way);
}

bool RegexPool::CanBegin(NodeId id) {
  const auto unbounded = budget_.Enter(Phase::kStep, Budget::kUnbounded);
  return !FirstBytes(id).IsEmpty();
}

bool RegexPool::HasNext(NodeId state) {
  const Node& current = node(state);
  if (current.searches) {
    if (!current.nullable) return search_.IsLive(state);
    const auto unbounded = budget_.Enter(Phase::kStep, Budget::kUnbounded);
    bool has_next = false;
    for (unsigned byte = 0; byte < 256 && !has_next; byte++)
      has_next = Entry(state, static_cast<uint8_t>(byte)) != kNothing;
    return has_next;
  }
  switch (current.kind) {
    case NodeKind::kBytes:
    case NodeKind::kRepeat:
      return true;
    case NodeKind::kLeaf:
      return !FirstOf(state).IsEmpty();
    case NodeKind::kConcat:
      return HasNext(current.a) || HasNext(current.b);
    case NodeKind::kAlternate:
      for (uint32_t i = current.min; i < current.max; i++)
        if (HasNext(child(i))) return true;
      return false;
    default:
      return false;
  }
}

bool RegexPool::Matches(NodeId id, std::string_view text) {
  for (char byte : text) {
    id = Next(id, static_cast<uint8_t>(byte));
    if (id == kNothing) return false;
  }
  return IsNullable(id);
}

}  // namespace onpolicy::grammar
