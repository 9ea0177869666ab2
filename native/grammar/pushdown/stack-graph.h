// Sets of return addresses -> stacks: a graph-structured stack (GSS) whose nodes are immutable and numbered by content. Left recursion
// makes cyclic stacks, which are interned as one strongly connected component.
#pragma once
#include <map>
#include <unordered_map>
#include <vector>

#include "grammar/pushdown/subsumption.h"

namespace onpolicy::grammar {

// Used while a component is interned: the parent is a member of it, given by its index.
constexpr StackId kMemberBit = 0x80000000u;

class StackGraph {
 public:
  explicit StackGraph(SymbolTable& symbols) : symbols_(symbols), subsumption_(stacks_, symbols) { Add({}); }
  const std::vector<Branch>& branches(StackId stack) const { return stacks_[stack]; }
  Subsumption& subsumption() { return subsumption_; }
  // Sorts the branches, and drops subsumed ones.
  StackId Intern(std::vector<Branch>* branches);
  std::vector<StackId> InternComponent(std::vector<std::vector<Branch>> members);
  StackId Union(StackId a, StackId b);
  // Returns true if only the end of the whole text follows the terminal of `stack`.
  bool EndsAll(StackId stack) const { return stacks_[stack].size() == 1 && stacks_[stack][0] == Branch{0, 0, 0}; }
  // Returns true if the text decides how some branch continues.
  bool HasDeferred(StackId stack) const { return deferred_[stack]; }

 private:
  void Add(std::vector<Branch> branches);

  SymbolTable& symbols_;
  Stacks stacks_;
  Subsumption subsumption_;
  std::vector<bool> deferred_;  // by stack
  HashIndex index_;             // by the hash of the branches
  std::map<std::vector<std::vector<Branch>>, std::vector<StackId>> component_index_;
  std::unordered_map<uint64_t, StackId> unions_;
};

}  // namespace onpolicy::grammar
