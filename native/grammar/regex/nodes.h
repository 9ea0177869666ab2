// Expression nodes -> numbers: equal nodes have one number (hash-consing), so that a node is also a state of the automaton.
#pragma once
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/budget.h"
#include "base/hash-index.h"
#include "base/paged-list.h"
#include "grammar/regex/automaton.h"
#include "grammar/regex/byte-set.h"
#include "grammar/regex/form.h"

namespace onpolicy::grammar {

using NodeId = uint32_t;
constexpr NodeId kNothing = 0;  // matches no text: the dead state
constexpr NodeId kEpsilon = 1;  // matches the empty text only
constexpr NodeId kAnyText = 2;  // matches every byte sequence
constexpr uint32_t kUnlimited = 0xFFFFFFFFu;

enum class NodeKind : uint8_t { kNothing, kEpsilon, kBytes, kConcat, kAlternate, kAnd, kNot, kRepeat, kTag, kLeaf };

struct Node {
  NodeKind kind;
  bool nullable = false;
  bool searches = false;  // contains And, Not or a leaf without tags, so that emptiness needs a search
  bool tagged = false;    // contains a tag, or a leaf with tags
  bool repeats = false;   // contains a repetition
  bool counts = false;    // contains a repetition with a limit, or of more than one time
  uint32_t a = 0, b = 0;      // children, or tag, or leaf and its state
  uint32_t min = 0, max = 0;  // min, max of a repetition; begin, end among the children of And and Alternate; the set of kBytes
};

struct StateRow;  // pool.h

class NodeTable {
 public:
  // Returns the number of a node, created on first use. `children`: of And and Alternate.
  NodeId Intern(const Node& node, const std::vector<NodeId>* children = nullptr);
  const Node& node(NodeId id) const { return nodes_[id]; }
  const ByteSet& set_of(const Node& bytes) const { return sets_[bytes.min]; }
  NodeId child(uint32_t at) const { return children_[at]; }
  std::vector<NodeId> ChildrenOf(NodeId id) const;
  Automaton* automaton_of(const Node& leaf) const { return leaves_[leaf.a]; }
  struct Split {
    NodeId head, tail;
  };
  // Splits a concatenation into its first part and the rest.
  Split SplitHead(NodeId id) const;
  // Returns the bytes that texts of a language begin with, or more of them if exactness would need a search.
  const ByteSet& FirstOf(NodeId id);
  // Returns the form, which is equal for equal expressions of all pools.
  const Form& FormOf(NodeId id) const { return forms_[id]; }
  bool IsNullable(NodeId id) const { return nodes_[id].nullable; }
  size_t size() const { return nodes_.size(); }
  // Work limits of the pool and of its users. A cut in kCompile means that a search found no answer, and that the constraint must be
  // refused.
  Budget& budget() { return budget_; }

 protected:
  NodeId InternSet(const ByteSet& set);
  // Copies all nodes of another table, which must have no leaves, and their states.
  void CopyFrom(const NodeTable& other);
  // Returns the number of an automaton among the leaves.
  uint32_t LeafOf(Automaton* automaton);

  Budget budget_;
  PagedList<StateRow*> row_of_;  // by node, null until the pool makes it

 private:
  ByteSet MakeFirst(NodeId id);
  Form MakeForm(NodeId id) const;
  static Form FormOfAutomaton(const Automaton& automaton);

  PagedList<Node> nodes_;
  PagedList<Form> forms_;  // by node
  std::vector<NodeId> children_;
  std::vector<ByteSet> sets_;
  PagedList<std::unique_ptr<const ByteSet>> firsts_;  // by node, null until computed
  SmallHashIndex index_;
  std::vector<Automaton*> leaves_;
  std::vector<Form> leaf_forms_;
  std::unordered_map<Automaton*, uint32_t> leaf_index_;
};

}  // namespace onpolicy::grammar
