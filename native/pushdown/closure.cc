// The closure's worklist, and the interning of the stacks it made.
#include "pushdown/closure.h"

#include <algorithm>

namespace onpolicy::grammar {

// More calls than this in one closure means a grammar far beyond any real one.
static constexpr size_t kMaxWork = 200000;
// A stack with more branches than this is pointed at instead of copied.
static constexpr size_t kManyBranches = 12;
// What a call, and an edge of one, count as work.
static constexpr uint64_t kCallWork = 150;
static constexpr uint64_t kEdgeWork = 24;
static constexpr uint64_t kPushWork = 15;
// So often may one stack not hold another until no more is asked in one closure.
static constexpr unsigned kMaxClosureQuestions = 100;

void Closure::Push(SequenceId sequence, Target target) {
  grammar_.regex_.Charge(kPushWork);
  const uint64_t key = PairKey(sequence, target);
  const uint32_t known = seen_.Find(key);
  if (known == kPushed) return;
  if (sequence != 0 && !(target & kCallBit) && (known == kHeld || IsHeld(sequence, target))) {
    // Another stack goes on with all of it, but for what comes first when the sequence is empty.
    if (grammar_.IsKnownNullable(sequence)) Push(0, target);
    return;
  }
  seen_.Add(key, kPushed);
  work_.push_back({sequence, target});
}

// Whether a stack under the same sequence goes on with all that this one does. Notes what this one holds.
bool Closure::IsHeld(SequenceId sequence, StackId stack) {
  if (!grammar_.IsKnownNullable(sequence) && !grammar_.IsKnownFilled(sequence)) return false;
  auto [latest, is_first] = latest_.emplace(sequence, stack);
  if (!is_first && questions_ > 0) {
    if (grammar_.Holds(latest->second, stack)) return true;
    questions_--;
  }
  latest->second = stack;
  for (StackId below : grammar_.Below(stack))
    if (const uint64_t key = PairKey(sequence, below); seen_.Find(key) == HashIndex::kNone) seen_.Add(key, kHeld);
  return false;
}

void Closure::Return(Target target) {
  if (target & kCallBit) {
    Call& call = calls_[target & ~kCallBit];
    if (call.nullable) return;
    call.nullable = true;
    if (KindOf(call.symbol) == SymbolKind::kRule) grammar_.rules_[IndexOf(call.symbol)].nullable = true;
    for (const Edge& edge : call.edges) ReturnEmpty(edge);
  } else if (target == 0) {
    complete_ = true;
  } else {
    // A deferred symbol always follows a terminal, so it cannot be met here.
    for (const Grammar::Branch& branch : grammar_.stacks_[target]) Push(branch.sequence, branch.parent);
  }
}

// Goes on behind a call that matched nothing.
void Closure::ReturnEmpty(const Edge& edge) {
  // Of up to n parts none need be empty: fewer of them are as good.
  if (edge.rest != 0 && (edge.target & kCallBit))
    if (const Symbol caller = calls_[edge.target & ~kCallBit].symbol; grammar_.rules_[IndexOf(caller)].is_up_to) return;
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
  const auto [head, rest] = grammar_.sequences_[work.sequence];
  bool is_new;
  const uint32_t index = CallOf(head, &is_new);
  calls_[index].edges.push_back({rest, work.target});
  if (calls_[index].nullable) ReturnEmpty({rest, work.target});
  if (!is_new) return;
  if (KindOf(head) == SymbolKind::kTerminal) {
    if (grammar_.regex_.IsNullable(IndexOf(head))) Return(index | kCallBit);
  } else if (KindOf(head) == SymbolKind::kRule) {
    for (SequenceId production : std::vector<SequenceId>(grammar_.Productions(IndexOf(head))))
      Push(production, index | kCallBit);
  }
}

std::vector<Config> Closure::Run(const std::vector<Grammar::Branch>& seeds) {
  count_ = 0;
  complete_ = false;
  call_of_.Clear();
  seen_.Clear();
  work_.clear();
  latest_.clear();
  questions_ = kMaxClosureQuestions;
  for (const Grammar::Branch& seed : seeds) Push(seed.sequence, seed.parent);
  size_t steps = 0;
  while (!work_.empty()) {
    const Work work = work_.back();
    work_.pop_back();
    Visit(work);
    if (++steps > kMaxWork) {
      grammar_.out_of_fuel_ = true;
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
        // A tail call out of the closure: take over the stack's own branches, or point at them where they are many.
        const std::vector<Grammar::Branch>& branches = grammar_.stacks_[edge.target];
        if (edge.target == 0 || (branches.size() > kManyBranches && !grammar_.HasDeferred(edge.target))) {
          result.push_back(edge);
        } else {
          for (const Grammar::Branch& branch : branches) result.push_back({branch.sequence, branch.parent});
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
  bool is_knot = members.size() > 1;
  std::vector<std::vector<Grammar::Branch>> stacks;
  for (uint32_t member : members) {
    std::vector<Grammar::Branch> branches;
    branches.reserve(flat_[member].size());
    for (const Edge& edge : flat_[member]) {
      StackId parent = edge.target;
      if (edge.target & kCallBit) {
        const uint32_t target = edge.target & ~kCallBit;
        const auto fellow = std::find(members.begin(), members.end(), target);
        is_knot = is_knot || fellow != members.end();
        parent = fellow != members.end() ? kKnotBit | static_cast<uint32_t>(fellow - members.begin())
                                         : stack_of_[target];
      }
      branches.push_back({0, edge.rest, parent});
    }
    stacks.push_back(std::move(branches));
  }
  if (!is_knot) {
    stack_of_[members[0]] = grammar_.InternStack(std::move(stacks[0]));
    return;
  }
  const std::vector<StackId> ids = grammar_.InternKnot(std::move(stacks));
  for (size_t i = 0; i < members.size(); i++) stack_of_[members[i]] = ids[i];
}

// Gives every call its stack: strongly connected calls (left recursion) together, the rest bottom-up.
void Closure::InternCalls() {
  if (flat_.size() < count_) flat_.resize(count_);
  seen_from_.assign(count_, kCallBit);
  for (uint32_t call = 0; call < count_; call++) Flatten(call);
  stack_of_.assign(count_, 0);
  struct Place {
    uint32_t order = 0, low = 0;
    bool on_path = false;
  };
  struct Frame {
    uint32_t call;
    size_t edge;
  };
  std::vector<Place> places(count_);
  std::vector<uint32_t> path;
  std::vector<Frame> frames;
  uint32_t counter = 0;
  for (uint32_t root = 0; root < count_; root++) {
    if (places[root].order) continue;
    frames.push_back({root, 0});
    while (!frames.empty()) {
      Frame& frame = frames.back();
      const uint32_t call = frame.call;
      Place& place = places[call];
      if (frame.edge == 0) {
        place = {++counter, counter, true};
        path.push_back(call);
      }
      bool descended = false;
      while (frame.edge < flat_[call].size()) {
        const Target target = flat_[call][frame.edge++].target;
        if (!(target & kCallBit)) continue;
        const Place& next = places[target & ~kCallBit];
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
}

std::vector<Config> Closure::Finish() {
  for (uint32_t call = 0; call < count_; call++)
    if (KindOf(calls_[call].symbol) == SymbolKind::kRule && !calls_[call].nullable)
      grammar_.rules_[IndexOf(calls_[call].symbol)].filled = true;
  InternCalls();
  for (uint32_t call = 0; call < count_; call++) grammar_.regex_.Charge(kCallWork + kEdgeWork * flat_[call].size());
  std::vector<Config> result;
  if (complete_) result.push_back({kEpsilon, 0});
  std::vector<uint32_t> terminals;
  for (uint32_t call = 0; call < count_; call++) {
    if (KindOf(calls_[call].symbol) == SymbolKind::kTerminal) {
      if (grammar_.regex_.HasNext(IndexOf(calls_[call].symbol))) terminals.push_back(call);
    } else if (KindOf(calls_[call].symbol) == SymbolKind::kTokenSet) {
      result.push_back({kTokenSetBit | IndexOf(calls_[call].symbol), stack_of_[call]});
    }
  }
  if (terminals.empty()) return result;
  std::sort(terminals.begin(), terminals.end(),
            [&](uint32_t a, uint32_t b) { return calls_[a].symbol < calls_[b].symbol; });
  if (terminals.size() == 1) {
    result.push_back({IndexOf(calls_[terminals[0]].symbol), stack_of_[terminals[0]]});
    return result;
  }
  // All terminals become one automaton whose ends are tagged, so that the walk follows a single state.
  std::vector<NodeId> options;
  std::vector<Grammar::Branch> branches;
  for (uint32_t tag = 0; tag < terminals.size(); tag++) {
    const uint32_t call = terminals[tag];
    options.push_back(grammar_.regex_.Concat(IndexOf(calls_[call].symbol), grammar_.regex_.Tag(tag)));
    for (const Grammar::Branch& branch : grammar_.stacks_[stack_of_[call]])
      branches.push_back({tag, branch.sequence, branch.parent});
    if (stack_of_[call] == 0) branches.push_back({tag, 0, 0});
  }
  result.push_back({grammar_.regex_.Alternate(std::move(options)), grammar_.InternStack(std::move(branches))});
  return result;
}

}  // namespace onpolicy::grammar
