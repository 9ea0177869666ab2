// The walk over a vocabulary's tries that collects the tokens which a state allows.
#pragma once
#include <string>
#include <vector>

#include "grammar/state-table.h"
#include "grammar/text-reach.h"
#include "grammar/vocabulary.h"

namespace onpolicy::grammar {

class MaskWalk {
 public:
  // Keeps references to all of them.
  MaskWalk(const Vocabulary& vocabulary, Grammar& grammar, StateTable& states, TextReach& reach);

  // A new mask begins: the walks up to the next one share a bounded amount of work. Beyond it only tokens of one byte
  // are found, with which any text can go on.
  void Refuel();
  // Whether the walks since then were cut short.
  bool IsSpent() const { return grammar_.regex().work() > last_work_; }
  // Adds the tokens of a slice that `state` allows to `tokens`. Subtrees whose fate hangs on the text go to `uncertain`
  // instead. `first` are the bytes that the state takes.
  void WalkSlice(const Slice& slice, const ByteSet& first, StateId state, std::string& text,
                 std::vector<uint32_t>* tokens, std::vector<uint32_t>* uncertain);
  // The same for one such subtree, now that the text is known.
  void WalkSubtree(const Slice& slice, uint32_t root, StateId state, std::string& text, std::vector<uint32_t>* tokens);

 private:
  // Where the walk stands at one depth. A state of one reading is stepped by its automaton's row alone.
  struct Level {
    const NodeId* row;  // null for several readings
    NodeId node;
    StackId stack;
    StateId state;      // of several readings
  };

  Level LevelOf(StateId state);
  void Run(const Slice& slice, uint32_t at, uint32_t end, std::string& text, std::vector<uint32_t>* tokens,
           std::vector<uint32_t>* uncertain);
  bool MayLoop(NodeId node, uint8_t byte);
  // The ending of the reading at `depth`, whose automaton has come to `node`.
  Ending EndingOf(NodeId node, StackId stack, size_t depth, std::string& text);

  const Vocabulary& vocabulary_;
  Grammar& grammar_;
  StateTable& states_;
  TextReach& reach_;
  std::vector<Level> levels_;  // by depth
  std::string path_;           // bytes from the root down to the node

  uint64_t last_work_ = 0;  // of the automaton
  // The last ending that was asked for: in free text it is asked for at every node.
  NodeId asked_node_ = kNothing;
  StackId asked_stack_ = 0;
  Ending asked_;
};

}  // namespace onpolicy::grammar
