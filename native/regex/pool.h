// Regular expressions over bytes -> hash-consed nodes that are at the same time the states of a lazy automaton.
// A state's successors are its derivatives, made when first asked for: counted repetition costs only the counts that
// are reached, and `And` / `Not` need no product construction. A pool belongs to one Constraint and is not locked.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash-index.h"
#include "base/paged-list.h"
#include "regex/byte-set.h"
#include "regex/form.h"

namespace onpolicy::grammar {

using NodeId = uint32_t;
constexpr NodeId kNothing = 0;  // matches no text: the dead state
constexpr NodeId kEpsilon = 1;  // matches the empty text only
constexpr NodeId kAnyText = 2;  // matches every byte sequence
constexpr uint32_t kUnlimited = 0xFFFFFFFFu;
constexpr NodeId kAcceptBit = 0x80000000u;  // in rows only
constexpr NodeId kUnasked = kAcceptBit;      // in rows only

// A hand-written automaton (number bounds, divisibility) that can stand in an expression as a leaf.
class Automaton {
 public:
  static constexpr uint32_t kDead = 0xFFFFFFFFu;
  virtual ~Automaton() = default;
  virtual uint32_t Next(uint32_t state, uint8_t byte) = 0;
  virtual bool Accepts(uint32_t state) = 0;
  // Automata of the same content are alike, state by state; one without content is like no other.
  virtual std::string Content() const { return {}; }
};

class RegexPool {
 public:
  RegexPool();

  NodeId Bytes(const ByteSet& set);
  NodeId Literal(std::string_view text);
  NodeId Concat(NodeId first, NodeId second);
  NodeId Concat(std::initializer_list<NodeId> parts);
  NodeId Alternate(std::vector<NodeId> options);
  NodeId And(std::vector<NodeId> parts);
  NodeId Not(NodeId inner);
  NodeId Repeat(NodeId inner, uint32_t min, uint32_t max);
  NodeId Optional(NodeId inner) { return Repeat(inner, 0, 1); }
  // Matches the empty text and tells which alternative of a merged terminal has ended.
  NodeId Tag(uint32_t tag);
  // `automaton` must outlive the pool: `Own` keeps it.
  NodeId Leaf(Automaton* automaton, uint32_t state);
  Automaton* Own(std::unique_ptr<Automaton> automaton);

  // Equal for equal expressions of all pools.
  const Form& FormOf(NodeId node) const { return forms_[node]; }
  bool IsNullable(NodeId node) const { return nodes_[node].nullable; }
  // Tags of the alternatives that may end here; tag 0 for an untagged expression.
  const std::vector<uint32_t>& AcceptedTags(NodeId node);
  bool IsAccepting(NodeId node) { return !AcceptedTags(node).empty(); }
  // The state after `byte`; kNothing when no text of the language goes on so.
  NodeId Next(NodeId state, uint8_t byte) { return Entry(state, byte) & ~kAcceptBit; }
  // The same with kAcceptBit where an alternative may end there.
  NodeId Entry(NodeId state, uint8_t byte) {
    const NodeId known = Row(state)[byte];
    return known == kUnasked ? Ask(state, byte) : known;
  }
  // Entries by byte; kUnasked where nobody has asked for one yet. Stays where it is, and fills as `Entry` is called.
  const NodeId* Row(NodeId state) { return row_of_[state] ? row_of_[state]->next : MakeRow(state); }
  // All bytes that may come next; more of them when there is no work left to tell.
  const ByteSet& FirstBytes(NodeId state);
  // Whether any byte may come next.
  bool HasNext(NodeId state);
  // False when no text at all is in the language. Searches only where `And`, `Not` or a leaf leave it open.
  bool IsLive(NodeId node);
  bool Matches(NodeId node, std::string_view text);
  // Number of texts in the language, or `cap` when there are that many or more. What takes too long to tell is `cap`, or
  // with `is_sure` the number that was found.
  uint64_t CountTexts(NodeId node, uint64_t cap, bool is_sure = false);

  size_t size() const { return nodes_.size(); }
  // Grows with the work that new states cost: about a million in 10 ms.
  uint64_t work() const { return work_; }
  // Adds what its user has to do for new states.
  void Charge(uint64_t work) { work_ += work; }
  // True once a search ran out of fuel: its answer "live" was then a guess, and the caller must refuse the constraint.
  bool exhausted() const { return exhausted_; }
  // False once a step dropped readings or took for dead what a longer search might find alive: that depends on what else
  // this pool holds, so another pool may see the same expression otherwise.
  bool IsExact() const { return is_exact_; }
  // The constraint is compiled. From now on searches are short, and what they leave open counts as dead.
  void Bind() { is_bound_ = true; }
  bool IsBound() const { return is_bound_; }
  // Once so much work is done in all, `Entry` no longer searches for the texts of a new state, and takes it for dead.
  // A step begins, whose searches share a bounded amount of work.
  void SearchUntil(uint64_t work) {
    last_search_ = work;
    search_end_ = work_ + kStepSearch;
  }
  // Whether a search of a step was given up: some texts may be missing from then on.
  bool has_given_up() const { return has_given_up_; }
  bool IsStopped() const { return work_ > last_search_; }

 private:
  enum class Kind : uint8_t { kNothing, kEpsilon, kBytes, kConcat, kAlternate, kAnd, kNot, kRepeat, kTag, kLeaf };
  struct Node {
    Kind kind;
    bool nullable;
    bool searches;  // holds And, Not or a leaf, so emptiness needs a look
    bool tagged;
    bool repeats;   // holds a repetition
    uint32_t a, b;     // children, or tag, or leaf and its state
    uint32_t min, max;  // of a repetition; begin and end in children_ of And and Alternate; index in sets_ of kBytes
  };
  struct Edge {
    ByteSet bytes;
    NodeId target;
  };

  NodeId Intern(const Node& node, const std::vector<NodeId>* children);
  NodeId Prepend(NodeId first, NodeId second);
  std::vector<NodeId> ChildrenOf(NodeId node) const;
  // pool-form.cc
  Form MakeForm(NodeId node) const;
  static Form FormOfAutomaton(const Automaton& automaton);
  NodeId MergeList(Kind kind, std::vector<NodeId> parts);
  // simplify.cc
  struct Split {
    NodeId head, tail;
  };
  Split SplitHead(NodeId node) const;
  bool Contains(NodeId whole, NodeId part, unsigned depth);
  NodeId JoinRanges(NodeId one, NodeId two);
  bool HaveTagsOfTheirOwn(const std::vector<NodeId>& parts) const;
  void Absorb(std::vector<NodeId>* parts);
  const std::vector<Edge>& Edges(NodeId node);
  std::vector<Edge> MakeEdges(NodeId node);
  std::vector<Edge> Combine(const std::vector<NodeId>& parts, bool is_and);
  struct StateRow {
    NodeId next[256];
    ByteSet first;
    bool is_whole = false;  // all entries and `first` are known
  };
  // step.cc
  NodeId* MakeRow(NodeId state);
  NodeId Ask(NodeId state, uint8_t byte);
  NodeId Derive(NodeId node, uint8_t byte, ByteSet* same);
  NodeId DeriveAnew(NodeId node, uint8_t byte, ByteSet* same);
  NodeId Readings(std::vector<NodeId> options, size_t count);
  NodeId RestOf(const Node& repeat);
  // What the searches of one step may cost: some 3 ms.
  static constexpr uint64_t kStepSearch = 300'000;
  enum class Finding { kText, kNothing, kUnknown };
  bool Search(NodeId node);
  Finding BreadthFirst(NodeId start, size_t limit, uint64_t last_work);
  void CountSearched();
  Finding DepthFirst(NodeId start, size_t limit, uint64_t last_work);
  NodeId Relaxed(NodeId node);

  PagedList<Node> nodes_;
  PagedList<Form> forms_;  // by node
  std::vector<NodeId> children_;
  std::vector<ByteSet> sets_;
  SmallHashIndex index_;
  PagedList<std::unique_ptr<std::vector<Edge>>> edges_;      // by node
  PagedList<std::unique_ptr<std::vector<uint32_t>>> tags_;  // by node
  PagedList<StateRow*> row_of_;                             // by node, null until asked for
  static constexpr size_t kRowsPerBlock = 16;
  std::vector<std::unique_ptr<StateRow[]>> rows_;  // blocks of them
  size_t row_count_ = 0;
  PagedList<uint8_t> live_;        // by node: 0 unknown, 1 live, 2 dead
  std::vector<std::unique_ptr<Automaton>> automata_;
  std::vector<Automaton*> leaves_;
  std::vector<Form> leaf_forms_;
  std::unordered_map<Automaton*, uint32_t> leaf_index_;
  uint64_t work_ = 0;
  uint64_t last_simplified_ = UINT64_MAX;  // work from which on lists of the step are left as they are
  unsigned questions_ = 0;  // steps of the question of one part about another that is being asked
  std::unordered_map<NodeId, NodeId> relaxed_;
  size_t searched_ = 0;  // states that searches have looked at
  bool exhausted_ = false;
  bool is_exact_ = true;
  bool is_bound_ = false;
  bool has_given_up_ = false;
  uint64_t search_end_ = UINT64_MAX;  // of the searches of a step
  uint64_t last_search_ = UINT64_MAX;
  struct Derived {
    uint64_t step = 0;
    NodeId target = kNothing;
  };
  PagedList<Derived> derived_;          // by node: what it became in the latest step that met it
  uint64_t steps_ = 0, current_step_ = 0;  // a step: one byte after one state
  unsigned exact_ = 0;  // depth of `And` and `Not` that are being stepped: their parts keep all alternatives
};

}  // namespace onpolicy::grammar
