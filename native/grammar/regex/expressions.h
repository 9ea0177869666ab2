// Expressions -> simplified expressions: one constructor for each operator. A constructor returns the shortest equal node that its rules
// find.
#pragma once
#include <array>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "grammar/regex/nodes.h"

namespace onpolicy::grammar {

// Any text inside a JSON string, with printable ASCII unescaped: the states between its bytes.
struct TextTable {
  static constexpr uint8_t kDead = 0xFF;
  NodeId text = kNothing;
  std::vector<std::array<uint8_t, 256>> next;  // by state and byte; state 0 is between characters
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
  // Makes a kAnd or kAlternate of `parts`.
  NodeId MergeList(NodeKind kind, std::vector<NodeId> parts);
  NodeId Not(NodeId inner);
  NodeId Repeat(NodeId inner, uint32_t min, uint32_t max);
  NodeId Optional(NodeId inner) { return Repeat(inner, 0, 1); }
  // Returns the rest of a repetition after one of its items.
  NodeId RestOf(const Node& repeat);
  // Records that a node is one character inside a JSON string.
  void NoteCharacter(NodeId node) { characters_.insert(node); }
  // Records the node of any character: with only the necessary escapes, or in each spelling.
  void NoteAnyCharacter(NodeId node, bool is_anyway) { (is_anyway ? any_character_ : any_plain_) = node; }
  bool IsCharacter(NodeId node) const { return characters_.contains(node); }
  // Returns the node of any character, or kNothing if none was recorded.
  NodeId any_character(bool is_anyway = true) const { return is_anyway ? any_character_ : any_plain_; }
  // Makes a node that matches the empty text and identifies the alternative of a merged terminal that has ended.
  NodeId Tag(uint32_t tag);
  // Makes a leaf. `automaton` must outlive the pool; Own gives it to the pool.
  NodeId Leaf(Automaton* automaton, uint32_t state);
  Automaton* Own(std::unique_ptr<Automaton> automaton);

 protected:
  // Copies all expressions of another pool, which must have no automata.
  void CopyFrom(const Expressions& other);
  std::shared_ptr<const TextTable> text_table_;

 private:
  NodeId Prepend(NodeId first, NodeId second);
  // simplify.cc
  bool MeetCounts(NodeId one, NodeId two, NodeId* met);
  // Returns true if the operators of an expression show that each of its texts is one of `text_table_`.
  bool IsText(NodeId node) { return TextStates(node, 0) == 1; }
  // Returns a bit for each state of `text_table_` that texts of an expression may lead to from one. kNoText if some texts leave the table.
  uint64_t TextStates(NodeId node, unsigned from);
  uint64_t FindTextStates(const Node& node, unsigned from);
  bool IsSubset(NodeId part, NodeId whole, unsigned depth);
  NodeId JoinRanges(NodeId one, NodeId two);
  void DropSubsets(std::vector<NodeId>* parts);

  static constexpr uint64_t kNoText = ~uint64_t{0};

  Allowance subset_steps_;     // steps left for the comparison in progress
  std::unordered_map<uint64_t, uint64_t> text_states_;  // by node and state
  std::vector<NodeId> parts_;  // parts of the concatenation in progress
  std::unordered_set<NodeId> characters_;
  NodeId any_character_ = kNothing, any_plain_ = kNothing;
  std::vector<std::unique_ptr<Automaton>> automata_;
};

}  // namespace onpolicy::grammar
