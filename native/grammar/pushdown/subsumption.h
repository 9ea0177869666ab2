// Two stacks -> whether one subsumes the other: every continuation of the other is one of it. Branches under subsumed stacks are dropped.
// Without this, an ambiguous grammar has a branch for every place where a parse may have begun.
#pragma once
#include <memory>
#include <vector>

#include "base/hash-index.h"
#include "grammar/pushdown/symbols.h"

namespace onpolicy::grammar {

using StackId = uint32_t;  // 0 is the bottom: returning to it completes the grammar

// A return address: the sequence that follows when the part above has ended, and the stack below it.
struct Branch {
  uint32_t tag;
  SequenceId sequence;
  StackId parent;
  auto operator<=>(const Branch&) const = default;
};
inline uint64_t HashOf(const std::vector<Branch>& branches) {
  uint64_t hash = branches.size();
  for (const Branch& branch : branches) hash = MixBits((hash + branch.tag) ^ PairKey(branch.sequence, branch.parent));
  return hash;
}
using Stacks = std::vector<std::vector<Branch>>;  // by StackId; branches are sorted

class Subsumption {
 public:
  Subsumption(const Stacks& stacks, SymbolTable& symbols) : stacks_(stacks), symbols_(symbols) {}
  // Begins a closure: its comparisons share an allowance of steps.
  void BeginClosure() { steps_ = Allowance(limits::kSubsumptionSteps); }
  // Returns true if the syntax shows that every continuation of `part` is one of `whole`. False proves nothing.
  bool Subsumes(StackId whole, StackId part);
  // Returns the stacks reached from this one through one nullable branch, as far as closures have found them.
  const std::vector<StackId>& NextBelow(StackId stack);
  // Returns the stacks reached through any number of such branches, up to a limit.
  const std::vector<StackId>& Below(StackId stack);
  // Sorts branches and drops subsumed ones.
  void Reduce(std::vector<Branch>* branches);

 private:
  static constexpr uint32_t kNo = 0, kYes = 1, kOpen = 2, kAsked = 3;  // values of answers_; from kAsked on: place in asked_
  struct Answer {
    bool holds;
    uint32_t base = kUnlimited;  // index of the first pair in asked_ that it depends on, or kUnlimited
  };
  // A pair that is being compared.
  struct AskedPair {
    uint64_t key;
    uint32_t base;
  };
  Answer Ask(StackId whole, StackId part, Allowance* steps);
  // Looks up the answer for a pair without comparing branches.
  bool AskMemo(StackId whole, StackId part, uint64_t key, Answer* answer);
  // Finds out whether a branch from `first` to `last`, all with the same sequence, subsumes `part`.
  Answer AskAny(const Branch* first, const Branch* last, StackId part, Allowance* steps);
  uint32_t KnownAnswer(uint64_t key);

  const Stacks& stacks_;
  SymbolTable& symbols_;
  std::vector<std::unique_ptr<std::vector<StackId>>> next_below_, below_;  // by stack, null until computed
  std::vector<uint32_t> found_from_;  // by stack: the latest list of `below_` that it is in, plus one
  std::vector<uint64_t> covered_;  // by stack: the last group of branches one of whose stacks it is below
  uint64_t group_ = 0;
  HashIndex answers_, earlier_answers_;   // (whole, part) -> answer
  Allowance steps_;                       // steps left for all comparisons of one closure
  std::vector<AskedPair> asked_;
};

}  // namespace onpolicy::grammar
