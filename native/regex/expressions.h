// Expressions -> simplified expressions: one constructor for each operator, none of which makes what an equal node says shorter.
#pragma once
#include <array>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "regex/nodes.h"

namespace onpolicy::grammar {

// Any text inside a JSON string, with printable ASCII as it is: the states between its bytes.
struct TextTable {
  static constexpr uint8_t kDead = 0xFF;
  NodeId text = kNothing;
  std::vector<std::array<uint8_t, 256>> next;  // by state and byte; state 0 is that between characters
};

class Expressions : public NodeTable {
 public:
  Expressions();

  NodeId Bytes(const ByteSet& set) { return set.IsEmpty() ? kNothing : InternSet(set); }
  NodeId Literal(std::string_view text);
  NodeId Concat(NodeId first, NodeId second);
  NodeId Concat(std::span<const NodeId> parts, NodeId last = kEpsilon);
  NodeId Concat(std::initializer_list<NodeId> parts) { return Concat(std::span(parts.begin(), parts.size())); }
  NodeId Alternate(std::vector<NodeId> options) { return MergeList(NodeKind::kAlternate, std::move(options)); }
  NodeId And(std::vector<NodeId> parts) { return MergeList(NodeKind::kAnd, std::move(parts)); }
  // kAnd or kAlternate of `parts`.
  NodeId MergeList(NodeKind kind, std::vector<NodeId> parts);
  NodeId Not(NodeId inner);
  NodeId Repeat(NodeId inner, uint32_t min, uint32_t max);
  NodeId Optional(NodeId inner) { return Repeat(inner, 0, 1); }
  // What is left of a repetition after one of its items.
  NodeId RestOf(const Node& repeat);
  // Tells that a node is one character inside a JSON string.
  void NoteCharacter(NodeId node) { characters_.insert(node); }
  // The same of every character: with the escapes it needs, or in each of its spellings.
  void NoteAnyCharacter(NodeId node, bool is_anyway) { (is_anyway ? any_character_ : any_plain_) = node; }
  bool IsCharacter(NodeId node) const { return characters_.contains(node); }
  // The node of any character; kNothing where none was noted.
  NodeId any_character(bool is_anyway = true) const { return is_anyway ? any_character_ : any_plain_; }
  // Matches the empty text and tells which alternative of a merged terminal has ended.
  NodeId Tag(uint32_t tag);
  // `automaton` must outlive the pool, which `Own` sees to.
  NodeId Leaf(Automaton* automaton, uint32_t state);
  Automaton* Own(std::unique_ptr<Automaton> automaton);

 protected:
  // Begins with all expressions of another pool, which has no automata.
  void CopyFrom(const Expressions& other);
  std::shared_ptr<const TextTable> text_table_;

 private:
  NodeId Prepend(NodeId first, NodeId second);
  // simplify.cc
  bool MeetCounts(NodeId one, NodeId two, NodeId* met);
  // Whether every text of an expression is one of `text_table_`, by its operators.
  bool IsText(NodeId node) { return TextStates(node, 0) == 1; }
  // A bit for each state of `text_table_` that texts of an expression may lead to from one; kNoText where some leave it.
  uint64_t TextStates(NodeId node, unsigned from);
  uint64_t FindTextStates(const Node& node, unsigned from);
  bool IsSubset(NodeId part, NodeId whole, unsigned depth);
  NodeId JoinRanges(NodeId one, NodeId two);
  void DropSubsets(std::vector<NodeId>* parts);

  static constexpr uint64_t kNoText = ~uint64_t{0};

  Allowance subset_steps_;     // of the comparison in progress
  std::unordered_map<uint64_t, uint64_t> text_states_;  // by node and state
  std::vector<NodeId> parts_;  // of the concatenation in progress
  std::unordered_set<NodeId> characters_;
  NodeId any_character_ = kNothing, any_plain_ = kNothing;
  std::vector<std::unique_ptr<Automaton>> automata_;
};

}  // namespace onpolicy::grammar
