// Return addresses -> the terminals that may start next, each with its stack: one pass over rules that match the empty
// text, call one another, or call themselves first.
#pragma once
#include <vector>

#include "base/hash-index.h"
#include "pushdown/grammar.h"

namespace onpolicy::grammar {

constexpr uint32_t kKnotBit = 0x80000000u;

// Serves one closure after another, so that its lists keep their room.
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
  void ReturnEmpty(const Edge& edge);
  void Visit(Work work);
  std::vector<Config> Finish();
  // The call of a symbol; `is_new`: there was none.
  uint32_t CallOf(Symbol symbol, bool* is_new);
  // Writes the non-empty return addresses of a call to `flat_`, looking through tail calls.
  void Flatten(uint32_t call);
  void InternCalls();
  // Interns the stacks of strongly connected calls.
  void InternMembers(std::vector<uint32_t> members);

  Grammar& grammar_;
  std::vector<Call> calls_;
  uint32_t count_ = 0;  // of the calls; behind them lies room for more
  HashIndex call_of_;   // by symbol
  std::vector<Work> work_;
  HashIndex seen_;
  std::unordered_map<SequenceId, StackId> latest_;  // of the stacks under a sequence
  unsigned questions_ = 0;  // how often one stack may not hold another until no more is asked
  bool complete_ = false;
  std::vector<std::vector<Edge>> flat_;   // by call
  std::vector<uint32_t> open_, seen_from_;  // of one call that is looked through: what is left, and by call, who saw it
  std::vector<StackId> stack_of_;         // by call
};

}  // namespace onpolicy::grammar
