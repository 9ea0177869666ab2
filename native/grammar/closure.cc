// The closure's worklist, and the interning of the stacks it made.
#include "grammar/closure.h"

#include <algorithm>

namespace onpolicy::grammar {

// More calls than this in one closure means a grammar far beyond any real one.
static constexpr size_t kMaxWork = 200000;
// A stack with more branches than this is pointed at instead of copied.
static constexpr size_t kManyBranches = 12;
// What a call, and an edge of one, count as work.
static constexpr uint64_t kCallWork = 100;
static constexpr uint64_t kEdgeWork = 16;
static constexpr uint64_t kPushWork = 10;

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
    for (const Edge& edge : call.edges) Push(edge.rest, edge.target);
  } else if (target == 0) {
    complete_ = true;
  } else {
    // A deferred symbol always follows a terminal, so it cannot be met here.
    for (const Grammar::Branch& branch : grammar_.stacks_[target]) Push(branch.sequence, branch.parent);
  }
}

void Closure::Visit(Work work) {
  if (work.sequence == 0) return Return(work.target);
  const auto [head, rest] = grammar_.sequences_[work.sequence];
  auto [it, is_new] = call_of_.emplace(head, static_cast<uint32_t>(calls_.size()));
  const uint32_t index = it->second;
  if (is_new) calls_.push_back({head, false, {}});
  calls_[index].edges.push_back({rest, work.target});
  if (calls_[index].nullable) Push(rest, work.target);
  if (!is_new) return;
  if (KindOf(head) == SymbolKind::kTerminal) {
    if (grammar_.regex_.IsNullable(IndexOf(head))) Return(index | kCallBit);
  } else if (KindOf(head) == SymbolKind::kRule) {
    for (SequenceId production : std::vector<SequenceId>(grammar_.Productions(IndexOf(head))))
      Push(production, index | kCallBit);
  }
}

std::vector<Config> Closure::Run(const std::vector<Grammar::Branch>& seeds) {
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

std::vector<Closure::Edge> Closure::Flatten(uint32_t start) const {
  std::vector<Edge> result;
  std::vector<uint32_t> open{start};
  std::unordered_set<uint32_t> seen{start};
  while (!open.empty()) {
    const uint32_t call = open.back();
    open.pop_back();
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
      } else if (seen.insert(edge.target & ~kCallBit).second) {
        open.push_back(edge.target & ~kCallBit);
      }
    }
  }
  return result;
}

// Gives every call its stack: strongly connected calls (left recursion) together, the rest bottom-up.
void Closure::InternCalls() {
  const uint32_t count = static_cast<uint32_t>(calls_.size());
  flat_.resize(count);
  for (uint32_t call = 0; call < count; call++) flat_[call] = Flatten(call);
  stack_of_.assign(count, 0);
  std::vector<uint32_t> order(count, 0), low(count, 0), path;
  std::vector<bool> on_path(count, false);
  uint32_t counter = 0;
  struct Frame {
    uint32_t call;
    size_t edge;
  };
  for (uint32_t root = 0; root < count; root++) {
    if (order[root]) continue;
    std::vector<Frame> frames{{root, 0}};
    while (!frames.empty()) {
      Frame& frame = frames.back();
      const uint32_t call = frame.call;
      if (frame.edge == 0) {
        order[call] = low[call] = ++counter;
        path.push_back(call);
        on_path[call] = true;
      }
      bool descended = false;
      while (frame.edge < flat_[call].size()) {
        const Target target = flat_[call][frame.edge++].target;
        if (!(target & kCallBit)) continue;
        const uint32_t next = target & ~kCallBit;
        if (!order[next]) {
          frames.push_back({next, 0});
          descended = true;
          break;
        }
        if (on_path[next]) low[call] = std::min(low[call], order[next]);
      }
      if (descended) continue;
      if (low[call] == order[call]) {
        std::vector<uint32_t> members;
        do {
          members.push_back(path.back());
          on_path[path.back()] = false;
          path.pop_back();
        } while (members.back() != call);
        std::sort(members.begin(), members.end(),
                  [&](uint32_t a, uint32_t b) { return calls_[a].symbol < calls_[b].symbol; });
        bool is_knot = members.size() > 1;
        std::vector<std::vector<Grammar::Branch>> stacks;
        for (uint32_t member : members) {
          std::vector<Grammar::Branch> branches;
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
        if (is_knot) {
          const std::vector<StackId> ids = grammar_.InternKnot(std::move(stacks));
          for (size_t i = 0; i < members.size(); i++) stack_of_[members[i]] = ids[i];
        } else {
          stack_of_[call] = grammar_.InternStack(std::move(stacks[0]));
        }
      }
      const uint32_t done = call;
      frames.pop_back();
      if (!frames.empty()) low[frames.back().call] = std::min(low[frames.back().call], low[done]);
    }
  }
}

std::vector<Config> Closure::Finish() {
  for (const Call& call : calls_)
    if (KindOf(call.symbol) == SymbolKind::kRule && !call.nullable) grammar_.rules_[IndexOf(call.symbol)].filled = true;
  InternCalls();
  for (const std::vector<Edge>& edges : flat_) grammar_.regex_.Charge(kCallWork + kEdgeWork * edges.size());
  std::vector<Config> result;
  if (complete_) result.push_back({kEpsilon, 0});
  std::vector<uint32_t> terminals;
  for (uint32_t call = 0; call < calls_.size(); call++) {
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
