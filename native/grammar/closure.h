// Return addresses -> the terminals that may start next, each with its stack: one pass over rules that match the empty
// text, call one another, or call themselves first.
#pragma once
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/hash-index.h"

namespace onpolicy::grammar {

constexpr uint32_t kKnotBit = 0x80000000u;

class Closure {
 public:
  explicit Closure(Grammar& grammar) : grammar_(grammar) {}
  std::vector<Config> Run(const std::vector<Grammar::Branch>& seeds);

 private:
  // Where a symbol returns to: a finished stack, or (with kCallBit) a call of this closure.
  using Target = uint32_t;
  static constexpr uint32_t kCallBit = 0x80000000u;
  struct Edge {
    SequenceId rest;
    Target target;
  };
  struct Call {
    Symbol symbol;
    bool nullable = false;
    std::vector<Edge> edges;
  };
  struct Work {
    SequenceId sequence;
    Target target;
  };

  static constexpr uint32_t kPushed = 0, kHeld = 1;  // values of seen_
  void Push(SequenceId sequence, Target target);
  bool IsHeld(SequenceId sequence, StackId stack);
  void Return(Target target);
  void Visit(Work work);
  std::vector<Config> Finish();
  // Non-empty return addresses of a call, looking through tail calls.
  std::vector<Edge> Flatten(uint32_t call) const;
  void InternCalls();

  Grammar& grammar_;
  std::vector<Call> calls_;
  std::unordered_map<Symbol, uint32_t> call_of_;
  std::vector<Work> work_;
  HashIndex seen_;
  std::unordered_map<SequenceId, StackId> latest_;  // of the stacks under a sequence
  unsigned questions_ = 12;  // how often one stack may not hold another until no more is asked
  bool complete_ = false;
  std::vector<std::vector<Edge>> flat_;   // by call
  std::vector<StackId> stack_of_;         // by call
};

}  // namespace onpolicy::grammar
