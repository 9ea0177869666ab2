// The closure's worklist, and the interning of its stacks.
#include "pushdown/closure.h"

#include <algorithm>

namespace onpolicy::grammar {

// What a call, an edge of one, and a push count as work.
static constexpr uint64_t kCallWork = 150;
static constexpr uint64_t kEdgeWork = 24;
static constexpr uint64_t kPushWork = 15;

void Closure::Push(SequenceId sequence, Target target) {
  budget_.Spend(kPushWork);
  const uint64_t key = PairKey(sequence, target);
  const uint32_t known = seen_.Find(key);
  if (known == kPushed) return;
  if (sequence != 0 && !(target & kCallBit) && (known == kSubsumed || IsSubsumed(sequence, target))) {
    // The other stack allows all of it, except what comes first when the sequence is empty.
    if (symbols_.IsKnownNullable(sequence)) Push(0, target);
    return;
  }
  seen_.Add(key, kPushed);
  work_.push_back({sequence, target});
}

// Whether an earlier stack under the same sequence subsumes this one. Notes what this one subsumes.
bool Closure::IsSubsumed(SequenceId sequence, StackId stack) {
  if (!symbols_.IsKnownNullable(sequence) && !symbols_.IsKnownNotNullable(sequence)) return false;
  auto [latest, is_first] = latest_.emplace(sequence, stack);
  if (!is_first && !misses_.IsSpent()) {
    if (stacks_.subsumption().Subsumes(latest->second, stack)) return true;
    misses_.Spend();
  }
  latest->second = stack;
  MarkBelow(sequence, stack);
  return false;
}

// Notes that stacks below are subsumed under the sequence. Below those that are known already, all are.
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
  // "Up to n parts" needs no empty part: fewer parts match the same.
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
    for (SequenceId production : std::vector<SequenceId>(symbols_.Productions(head)))
      Push(production, index | kCallBit);
  }
}

std::vector<Config> Closure::Run(const std::vector<Branch>& seeds) {
  count_ = 0;
  complete_ = false;
  call_of_.Clear();
  seen_.Clear();
  work_.clear();
  latest_.clear();
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
  open_.assign(1, start);
  seen_from_[start] = start;
  while (!open_.empty()) {
    const uint32_t call = open_.back();
    open_.pop_back();
    for (const Edge& edge : calls_[call].edges) {
      if (edge.rest != 0) {
        result.push_back(edge);
      } else if (!(edge.target & kCallBit)) {
        // A tail call out of the closure: copies the branches of the stack, or points at them where they are many.
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

void Closure::InternMembers(std::vector<uint32_t> members) {
  std::sort(members.begin(), members.end(),
            [&](uint32_t a, uint32_t b) { return calls_[a].symbol < calls_[b].symbol; });
  bool is_component = members.size() > 1;
  std::vector<std::vector<Branch>> stacks;
  for (uint32_t member : members) {
    std::vector<Branch> branches;
    branches.reserve(flat_[member].size());
    for (const Edge& edge : flat_[member]) {
      StackId parent = edge.target;
      if (edge.target & kCallBit) {
        const uint32_t target = edge.target & ~kCallBit;
        const auto member_at = std::find(members.begin(), members.end(), target);
        is_component = is_component || member_at != members.end();
        parent = member_at != members.end() ? kMemberBit | static_cast<uint32_t>(member_at - members.begin())
                                         : stack_of_[target];
      }
      branches.push_back({0, edge.rest, parent});
    }
    stacks.push_back(std::move(branches));
  }
  if (!is_component) {
    stack_of_[members[0]] = stacks_.Intern(std::move(stacks[0]));
    return;
  }
  const std::vector<StackId> ids = stacks_.InternComponent(std::move(stacks));
  for (size_t i = 0; i < members.size(); i++) stack_of_[members[i]] = ids[i];
}

// Tarjan's strongly connected components, without recursion.
struct Closure::Search {
  struct Place {
    uint32_t order = 0, low = 0;
    bool on_path = false;
  };
  std::vector<Place> places;  // by call
  std::vector<uint32_t> path;
  uint32_t counter = 0;
};

// Gives every call its stack: those of a component (left recursion) together, the others bottom-up.
void Closure::InternCalls() {
  if (flat_.size() < count_) flat_.resize(count_);
  seen_from_.assign(count_, kCallBit);
  for (uint32_t call = 0; call < count_; call++) Flatten(call);
  stack_of_.assign(count_, 0);
  Search search;
  search.places.resize(count_);
  for (uint32_t root = 0; root < count_; root++)
    if (!search.places[root].order) Connect(root, &search);
}

void Closure::Connect(uint32_t root, Search* search) {
  struct Frame {
    uint32_t call;
    size_t edge;
  };
  auto& [places, path, counter] = *search;
  std::vector<Frame> frames{{root, 0}};
  while (!frames.empty()) {
    Frame& frame = frames.back();
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
  std::vector<uint32_t> terminals;
  for (uint32_t call = 0; call < count_; call++) {
    if (KindOf(calls_[call].symbol) == SymbolKind::kTerminal) {
      if (!symbols_.regex().HasNext(IndexOf(calls_[call].symbol))) continue;
      if (symbols_.IsShared(calls_[call].symbol)) {
        result.push_back({IndexOf(calls_[call].symbol), stack_of_[call]});
      } else {
        terminals.push_back(call);
      }
    } else if (KindOf(calls_[call].symbol) == SymbolKind::kTokenSet) {
      result.push_back({kTokenSetBit | IndexOf(calls_[call].symbol), stack_of_[call]});
    }
  }
  std::sort(terminals.begin(), terminals.end(),
            [&](uint32_t a, uint32_t b) { return calls_[a].symbol < calls_[b].symbol; });
  for (const std::vector<uint32_t>& group : Apart(terminals))
    result.push_back(group.size() > 1 ? Merged(group) : Config{IndexOf(calls_[group[0]].symbol), stack_of_[group[0]]});
  return result;
}

// One alone is the expression that it is in other schemas: its states and masks are shared.
std::vector<std::vector<uint32_t>> Closure::Apart(const std::vector<uint32_t>& terminals) {
  std::vector<std::vector<uint32_t>> groups;
  std::vector<ByteSet> firsts;  // by group
  for (uint32_t terminal : terminals) {
    ByteSet first = symbols_.regex().FirstOf(IndexOf(calls_[terminal].symbol));
    size_t into = groups.size();
    for (size_t i = groups.size(); i-- > 0;) {
      if ((firsts[i] & first).IsEmpty()) continue;
      first = first | firsts[i];
      if (into < groups.size()) {
        groups[i].insert(groups[i].end(), groups[into].begin(), groups[into].end());
        groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(into));
        firsts.erase(firsts.begin() + static_cast<std::ptrdiff_t>(into));
      }
      into = i;
    }
    if (into == groups.size()) {
      groups.emplace_back();
      firsts.emplace_back();
    }
    groups[into].push_back(terminal);
    firsts[into] = first;
  }
  return groups;
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
  NodeId result = regex.Alternate(std::move(options));
  for (size_t i = shared.size(); i-- > 0;) result = regex.Concat(shared[i], result);
  return result;
}

Config Closure::Merged(const std::vector<uint32_t>& terminals) {
  std::vector<NodeId> options;
  std::vector<Branch> branches;
  // Each ends in a tag of its own: no two are equal.
  for (uint32_t tag = 0; tag < terminals.size(); tag++) {
    const uint32_t call = terminals[tag];
    options.push_back(symbols_.regex().Concat(IndexOf(calls_[call].symbol), symbols_.regex().Tag(tag)));
    for (const Branch& branch : stacks_.branches(stack_of_[call])) branches.push_back({tag, branch.sequence, branch.parent});
    if (stack_of_[call] == 0) branches.push_back({tag, 0, 0});
  }
  return {Factored(std::move(options)), stacks_.Intern(std::move(branches))};
}

}  // namespace onpolicy::grammar
