// The closure's worklist, and the interning of its stacks.
#include "grammar/pushdown/closure.h"

#include <algorithm>

namespace onpolicy::grammar {

// Work counted for a call, for an edge of one, and for a push.
static constexpr uint64_t kCallWork = 150;
static constexpr uint64_t kEdgeWork = 24;
static constexpr uint64_t kPushWork = 15;

void Closure::Push(SequenceId sequence, Target target) {
  budget_.Spend(kPushWork);
  const uint64_t key = PairKey(sequence, target);
  const uint32_t known = seen_.Find(key);
  if (known == kPushed) return;
  if (sequence != 0 && !(target & kCallBit) && (known == kSubsumed || IsSubsumed(sequence, target))) {
    // The other stack allows everything except the continuations of an empty sequence.
    if (symbols_.IsKnownNullable(sequence)) Push(0, target);
    return;
  }
  seen_.Add(key, kPushed);
  work_.push_back({sequence, target});
}

// Returns true if an earlier stack under the same sequence subsumes this one. Otherwise records the stacks that this one subsumes.
bool Closure::IsSubsumed(SequenceId sequence, StackId stack) {
  if (!symbols_.IsKnownNullable(sequence) && !symbols_.IsKnownNotNullable(sequence)) return false;
  const StackId latest = latest_.Find(sequence);
  if (latest != HashIndex::kNone && !misses_.IsSpent()) {
    if (stacks_.subsumption().Subsumes(latest, stack)) return true;
    misses_.Spend();
  }
  latest_.Set(sequence, stack);
  MarkBelow(sequence, stack);
  return false;
}

// Records that the stacks below are subsumed under the sequence. Stops at stacks that are already recorded.
void Closure::MarkBelow(SequenceId sequence, StackId stack) {
  marked_.assign(1, stack);
  for (size_t at = 0; at < marked_.size(); at++)
    for (StackId below : stacks_.subsumption().NextBelow(marked_[at])) {
      const uint64_t key = PairKey(sequence, below);
      if (seen_.Find(key) != HashIndex::kNone) continue;
      seen_.Add(key, kSubsumed);
      marked_.push_back(below);
    }
  budget_.Spend(2 * marked_.size());
}

void Closure::Return(Target target) {
  if (target & kCallBit) {
    Call& call = calls_[target & ~kCallBit];
    if (call.nullable) return;
    call.nullable = true;
    if (KindOf(call.symbol) == SymbolKind::kRule) symbols_.NoteNullable(call.symbol, true);
    for (const Edge& edge : call.edges) ReturnEmpty(edge);
  } else if (target == 0) {
    complete_ = true;
  } else {
    // A deferred symbol always follows a terminal, so it cannot be met here.
    for (const Branch& branch : stacks_.branches(target)) Push(branch.sequence, branch.parent);
  }
}

// Continues behind a call that matched the empty text.
void Closure::ReturnEmpty(const Edge& edge) {
  // "Up to n parts" needs no empty part, because fewer parts match the same text.
  if (edge.rest != 0 && (edge.target & kCallBit))
    if (const Symbol caller = calls_[edge.target & ~kCallBit].symbol; symbols_.IsUpTo(caller)) return;
  Push(edge.rest, edge.target);
}

uint32_t Closure::CallOf(Symbol symbol, bool* is_new) {
  const uint32_t known = call_of_.Find(symbol);
  *is_new = known == HashIndex::kNone;
  if (!*is_new) return known;
  call_of_.Add(symbol, count_);
  if (calls_.size() == count_) calls_.emplace_back();
  calls_[count_].symbol = symbol;
  calls_[count_].nullable = false;
  calls_[count_].edges.clear();
  return count_++;
}

void Closure::Visit(Work work) {
  if (work.sequence == 0) return Return(work.target);
  const auto [head, rest] = symbols_.sequence(work.sequence);
  bool is_new;
  const uint32_t index = CallOf(head, &is_new);
  calls_[index].edges.push_back({rest, work.target});
  if (calls_[index].nullable) ReturnEmpty({rest, work.target});
  if (!is_new) return;
  if (KindOf(head) == SymbolKind::kTerminal) {
    if (symbols_.regex().IsNullable(IndexOf(head))) Return(index | kCallBit);
  } else if (KindOf(head) == SymbolKind::kRule) {
    for (SequenceId production : symbols_.Productions(head)) Push(production, index | kCallBit);
  }
}

std::vector<Config> Closure::Run(const std::vector<Branch>& seeds) {
  count_ = 0;
  complete_ = false;
  call_of_.Clear();
  seen_.Clear();
  work_.clear();
  latest_.Clear();
  misses_ = Allowance(limits::kClosureMisses);
  for (const Branch& seed : seeds) Push(seed.sequence, seed.parent);
  size_t steps = 0;
  while (!work_.empty()) {
    const Work work = work_.back();
    work_.pop_back();
    Visit(work);
    if (++steps > limits::kClosureSteps) {
      budget_.Cut(Phase::kClosure);
      return {};
    }
  }
  return Finish();
}

void Closure::Flatten(uint32_t start) {
  std::vector<Edge>& result = flat_[start];
  result.clear();
  // Chain rules (a rule whose only body is the next rule) all return to the return address of the first one.
  if (const std::vector<Edge>& edges = calls_[start].edges; edges.size() == 1 && edges[0].rest == 0 && (edges[0].target & kCallBit))
    if (const uint32_t caller = edges[0].target & ~kCallBit; caller < start) {
      result = flat_[caller];
      return;
    }
  open_.assign(1, start);
  seen_from_[start] = start;
  while (!open_.empty()) {
    const uint32_t call = open_.back();
    open_.pop_back();
    budget_.Spend(1);
    for (const Edge& edge : calls_[call].edges) {
      if (edge.rest != 0) {
        result.push_back(edge);
      } else if (!(edge.target & kCallBit)) {
        // A tail call out of the closure: copies the branches of the stack, or refers to them if there are many.
        const std::vector<Branch>& branches = stacks_.branches(edge.target);
        if (edge.target == 0 || (branches.size() > limits::kCopiedBranches && !stacks_.HasDeferred(edge.target))) {
          result.push_back(edge);
        } else {
          for (const Branch& branch : branches) result.push_back({branch.sequence, branch.parent});
        }
      } else if (const uint32_t caller = edge.target & ~kCallBit; seen_from_[caller] != start) {
        seen_from_[caller] = start;
        open_.push_back(caller);
      }
    }
  }
}

bool Closure::AddBranches(uint32_t call, std::span<const uint32_t> members, std::vector<Branch>* branches) {
  bool is_component = false;
  for (const Edge& edge : flat_[call]) {
    StackId parent = edge.target;
    if (edge.target & kCallBit) {
      const uint32_t target = edge.target & ~kCallBit;
      const auto member = std::find(members.begin(), members.end(), target);
      const bool is_member = member != members.end();
      is_component = is_component || is_member;
      parent = is_member ? kMemberBit | static_cast<uint32_t>(member - members.begin()) : stack_of_[target];
    }
    branches->push_back({0, edge.rest, parent});
  }
  return is_component;
}

void Closure::InternMembers(std::span<uint32_t> members) {
  if (members.size() == 1) {
    branches_.clear();
    if (!AddBranches(members[0], members, &branches_)) {
      stack_of_[members[0]] = stacks_.Intern(&branches_);
      return;
    }
  }
  std::sort(members.begin(), members.end(),
            [&](uint32_t a, uint32_t b) { return calls_[a].symbol < calls_[b].symbol; });
  std::vector<std::vector<Branch>> stacks(members.size());
  for (size_t i = 0; i < members.size(); i++) AddBranches(members[i], members, &stacks[i]);
  const std::vector<StackId> ids = stacks_.InternComponent(std::move(stacks));
  for (size_t i = 0; i < members.size(); i++) stack_of_[members[i]] = ids[i];
}

// Gives every call its stack: the calls of a component (left recursion) together, the others bottom-up.
void Closure::InternCalls() {
  if (flat_.size() < count_) flat_.resize(count_);
  seen_from_.assign(count_, kCallBit);
  for (uint32_t call = 0; call < count_; call++) Flatten(call);
  stack_of_.assign(count_, 0);
  search_.places.assign(count_, {});
  search_.counter = 0;
  for (uint32_t root = 0; root < count_; root++)
    if (!search_.places[root].order) Connect(root);
}

// Tarjan's strongly connected components, without recursion.
void Closure::Connect(uint32_t root) {
  auto& [places, path, frames, counter] = search_;
  frames.assign(1, {root, 0});
  while (!frames.empty()) {
    Search::Frame& frame = frames.back();
    const uint32_t call = frame.call;
    Search::Place& place = places[call];
    if (frame.edge == 0) {
      place = {++counter, counter, true};
      path.push_back(call);
    }
    bool descended = false;
    while (frame.edge < flat_[call].size()) {
      const Target target = flat_[call][frame.edge++].target;
      if (!(target & kCallBit)) continue;
      const Search::Place& next = places[target & ~kCallBit];
      if (!next.order) {
        frames.push_back({target & ~kCallBit, 0});
        descended = true;
        break;
      }
      if (next.on_path) place.low = std::min(place.low, next.order);
    }
    if (descended) continue;
    if (place.low == place.order) {
      const auto first = std::find(path.begin(), path.end(), call);
      for (auto member = first; member != path.end(); member++) places[*member].on_path = false;
      InternMembers({first, path.end()});
      path.erase(first, path.end());
    }
    frames.pop_back();
    if (!frames.empty()) {
      uint32_t& low = places[frames.back().call].low;
      low = std::min(low, place.low);
    }
  }
}

std::vector<Config> Closure::Finish() {
  for (uint32_t call = 0; call < count_; call++)
    if (KindOf(calls_[call].symbol) == SymbolKind::kRule && !calls_[call].nullable)
      symbols_.NoteNullable(calls_[call].symbol, false);
  InternCalls();
  for (uint32_t call = 0; call < count_; call++) budget_.Spend(kCallWork + kEdgeWork * flat_[call].size());
  std::vector<Config> result;
  if (complete_) result.push_back({kEpsilon, 0});
  terminals_.clear();
  for (uint32_t call = 0; call < count_; call++) {
    if (KindOf(calls_[call].symbol) == SymbolKind::kTerminal) {
      if (!symbols_.regex().HasNext(IndexOf(calls_[call].symbol))) continue;
      if (symbols_.IsShared(calls_[call].symbol)) {
        result.push_back({IndexOf(calls_[call].symbol), stack_of_[call]});
      } else {
        terminals_.push_back({call, 0});
      }
    } else if (KindOf(calls_[call].symbol) == SymbolKind::kTokenSet) {
      result.push_back({kTokenSetBit | IndexOf(calls_[call].symbol), stack_of_[call]});
    }
  }
  GroupTerminals();
  for (size_t from = 0, to = 0; from < terminals_.size(); from = to) {
    while (to < terminals_.size() && terminals_[to].group == terminals_[from].group) to++;
    const uint32_t first = terminals_[from].call;
    result.push_back(to - from > 1 ? Merged({&terminals_[from], to - from})
                                   : Config{IndexOf(calls_[first].symbol), stack_of_[first]});
  }
  return result;
}

// A terminal alone in its group stays the expression that it is in other schemas, so that its states and masks are shared.
void Closure::GroupTerminals() {
  firsts_.clear();
  for (Terminal& terminal : terminals_) {
    ByteSet first = symbols_.regex().FirstOf(IndexOf(calls_[terminal.call].symbol));
    uint32_t into = static_cast<uint32_t>(firsts_.size());
    for (uint32_t group = 0; group < firsts_.size(); group++) {
      if ((firsts_[group] & first).IsEmpty()) continue;
      first = first | firsts_[group];
      if (into == firsts_.size()) {
        into = group;
        continue;
      }
      firsts_[group] = {};
      for (Terminal& other : terminals_)
        if (other.group == group) other.group = into;
    }
    if (into == firsts_.size()) firsts_.emplace_back();
    firsts_[into] = first;
    terminal.group = into;
  }
  std::sort(terminals_.begin(), terminals_.end(), [&](const Terminal& a, const Terminal& b) {
    return a.group != b.group ? a.group < b.group : calls_[a.call].symbol < calls_[b.call].symbol;
  });
}

NodeId Closure::Factored(std::vector<NodeId> options) {
  RegexPool& regex = symbols_.regex();
  std::vector<NodeId> shared;  // a loop: beginnings may be long
  std::vector<NodeTable::Split> splits;
  while (options.size() > 1) {
    splits.clear();
    for (NodeId option : options) splits.push_back(regex.SplitHead(option));
    budget_.Spend(5 * options.size());
    const NodeId head = splits[0].head;
    if (std::any_of(splits.begin(), splits.end(), [&](const auto& split) { return split.head != head; })) break;
    shared.push_back(head);
    for (size_t i = 0; i < options.size(); i++) options[i] = splits[i].tail;
  }
  if (options.size() > 1) {
    std::stable_sort(splits.begin(), splits.end(), [](const auto& a, const auto& b) { return a.head < b.head; });
    options.clear();
    for (size_t from = 0, to = 0; from < splits.size(); from = to) {
      std::vector<NodeId> tails;
      for (; to < splits.size() && splits[to].head == splits[from].head; to++) tails.push_back(splits[to].tail);
      options.push_back(regex.Concat(splits[from].head, Factored(std::move(tails))));
    }
  }
  return regex.Concat(shared, regex.Alternate(std::move(options)));
}

Config Closure::Merged(std::span<const Terminal> terminals) {
  std::vector<NodeId> options;
  branches_.clear();
  // Each option ends in its own tag, so that no two are equal.
  for (uint32_t tag = 0; tag < terminals.size(); tag++) {
    const uint32_t call = terminals[tag].call;
    options.push_back(symbols_.regex().Concat(IndexOf(calls_[call].symbol), symbols_.regex().Tag(tag)));
    for (const Branch& branch : stacks_.branches(stack_of_[call])) branches_.push_back({tag, branch.sequence, branch.parent});
    if (stack_of_[call] == 0) branches_.push_back({tag, 0, 0});
  }
  return {Factored(std::move(options)), stacks_.Intern(&branches_)};
}

}  // namespace onpolicy::grammar
