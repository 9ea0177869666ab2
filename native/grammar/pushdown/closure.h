// Return addresses -> the terminals that may start next, each with its stack: one pass over rules that match the empty
// text, call one another, or call themselves first.
#pragma once
#include <span>
#include <vector>

#include "base/hash-index.h"
#include "grammar/pushdown/grammar.h"

namespace onpolicy::grammar {

// Computes one closure after another, reusing its lists.
class Closure {
 public:
  Closure(SymbolTable& symbols, StackGraph& stacks) : symbols_(symbols), stacks_(stacks), budget_(symbols.regex().budget()) {}
  std::vector<Config> Run(const std::vector<Branch>& seeds);

 private:
  // Return address of a symbol: an interned stack, or (with kCallBit) a call of this closure.
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
  struct Terminal {
    uint32_t call, group;
  };
  // State of the search for strongly connected calls.
  struct Search {
    struct Place {
      uint32_t order = 0, low = 0;
      bool on_path = false;
    };
    struct Frame {
      uint32_t call;
      size_t edge;
    };
    std::vector<Place> places;  // by call
    std::vector<uint32_t> path;
    std::vector<Frame> frames;
    uint32_t counter = 0;
  };

  static constexpr uint32_t kPushed = 0, kSubsumed = 1;  // values of seen_
  void Push(SequenceId sequence, Target target);
  bool IsSubsumed(SequenceId sequence, StackId stack);
  void MarkBelow(SequenceId sequence, StackId stack);
  void Return(Target target);
  void ReturnEmpty(const Edge& edge);
  void Visit(Work work);
  std::vector<Config> Finish();
  // Returns the alternation of expressions, with common beginnings factored out.
  NodeId Factored(std::vector<NodeId> options);
  // Sorts the terminals into groups with disjoint first bytes.
  void GroupTerminals();
  // Combines all terminals in one automaton with tagged ends, so that a walk follows a single state.
  Config Merged(std::span<const Terminal> terminals);
  // Returns the call of a symbol. Sets `is_new` if it was added.
  uint32_t CallOf(Symbol symbol, bool* is_new);
  // Writes the non-empty return addresses of a call to `flat_`, looking through tail calls.
  void Flatten(uint32_t call);
  void InternCalls();
  void Connect(uint32_t root);
  // Adds the branches of a call. A parent among `members` is given by its index there. Returns true if there is one.
  bool AddBranches(uint32_t call, std::span<const uint32_t> members, std::vector<Branch>* branches);
  // Interns the stacks of strongly connected calls.
  void InternMembers(std::span<uint32_t> members);

  SymbolTable& symbols_;
  StackGraph& stacks_;
  Budget& budget_;
  std::vector<Call> calls_;
  uint32_t count_ = 0;  // calls in use; further ones are free
  HashIndex call_of_;   // by symbol
  std::vector<Work> work_;
  HashIndex seen_;
  HashIndex latest_;             // latest stack under a sequence
  std::vector<StackId> marked_;  // reused by MarkBelow
  Allowance misses_;  // comparisons of stacks that find no subsumption
  bool complete_ = false;
  std::vector<std::vector<Edge>> flat_;   // by call
  std::vector<uint32_t> open_, seen_from_;  // while one call is flattened: open edges, and by call the flattened call that saw it
  std::vector<StackId> stack_of_;         // by call
  Search search_;
  std::vector<Branch> branches_;          // branches of the stack being built
  std::vector<Terminal> terminals_;       // terminals that may start
  std::vector<ByteSet> firsts_;           // by group: the bytes that its terminals begin with
};

}  // namespace onpolicy::grammar
