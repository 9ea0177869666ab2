// The walk over a vocabulary's tries that collects the tokens which a state allows.
#pragma once
#include <string>
#include <vector>

#include "mask/state-table.h"
#include "mask/terminal-mask.h"
#include "mask/text-reach.h"
#include "mask/vocabulary.h"

namespace onpolicy::grammar {

// A token, and how many of its bytes follow the comma before an item. kAnyRest: whatever they are, it needs a look.
constexpr uint32_t kAnyRest = 0xFFFFFFFFu;
struct ItemToken {
  uint32_t token, rest;
  auto operator<=>(const ItemToken&) const = default;
};

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
  void WalkSubtree(const TriePlace& place, StateId state, std::string& text, std::vector<uint32_t>* tokens);
  // What `node` says of the vocabulary, whatever follows its terminal.
  std::shared_ptr<const TerminalMask> WalkTerminal(NodeId node);
  // Adds the tokens beyond the exits of a terminal that `node` under `stack` is in: as tokens, and as terminals that
  // are met there.
  void WalkExits(const TerminalMask& mask, NodeId node, StackId stack, std::string& text, std::vector<uint32_t>* tokens,
                 std::vector<std::shared_ptr<const TerminalMask>>* terminals, std::vector<TriePlace>* uncertain);
  // Tokens found since `Refuel` that may hold whole keys which were taken for new.
  const std::vector<uint32_t>& key_tokens() const { return key_tokens_; }
  // Whether a key that began before the token was taken for new.
  bool took_open_key() const { return took_open_key_; }
  // Tokens in which an item ends or begins that was taken for new.
  const std::vector<ItemToken>& item_tokens() const { return item_tokens_; }

 private:
  // A subtree of this many nodes is worth the question whether it can be taken whole.
  static constexpr uint32_t kWorthAsking = 3;
  // Where the walk stands at one depth. A state of one reading is stepped by its automaton's row alone.
  struct Level {
    const NodeId* row;  // null for several readings
    NodeId node;
    StackId stack;
    StateId state;      // of several readings
    bool completes;     // the end of the reading can only be the end of the whole text
  };

  // Whether even single bytes cost too much by now; some token has been found by then.
  bool IsBeyond(const std::vector<uint32_t>& tokens) const { return grammar_.regex().IsStopped() && !tokens.empty(); }
  // The same inside of a terminal, whose bytes are worth more.
  bool IsBeyondInside(const std::vector<uint32_t>& tokens) const;
  Level LevelOf(StateId state);
  void Run(const TokenTrie& tokens_by_bytes, uint32_t at, uint32_t end, std::string& text, std::vector<uint32_t>* tokens,
           std::vector<uint32_t>* uncertain);
  // Collects what stays inside of one terminal, and the places that leave it; false when these are too many.
  bool RunInside(uint32_t slice, uint32_t at, uint32_t end, TerminalMask* mask);
  // The same for the tokens that an exit of one path leads to, when `node` is where the walk goes on.
  std::shared_ptr<const TerminalMask> WalkTerminalBehind(const TerminalExit& exit, NodeId node);
  // The mask of a form: as it is remembered for all pools that see it alike, or filled now by `fill`, which says whether it
  // is worth it.
  template <typename Fill>
  std::shared_ptr<const TerminalMask> Remembered(const Form& form, Fill fill);
  bool AddExit(NodeId node, const TriePlace& place, size_t depth, TerminalMask* mask);
  // Records the tokens below a node of a trie that rest on assumptions made since `before`.
  void NoteAssumptions(const Grammar::Assumptions& before, const TokenTrie& trie, uint32_t at, bool after_quote);
  // Writes the bytes of a place to `path_`.
  void SetPath(const TriePlace& place);
  bool MayLoop(NodeId node, uint8_t byte);
  // The ending of the reading at `depth`, whose automaton has come to `node`.
  Ending EndingOf(NodeId node, StackId stack, size_t depth, std::string& text);

  const Vocabulary& vocabulary_;
  Grammar& grammar_;
  StateTable& states_;
  TextReach& reach_;
  std::vector<Level> levels_;  // by depth
  std::string path_;           // bytes from the root down to the node
  size_t root_depth_ = 0;      // how many bytes there were before the root,
  bool after_quote_ = false;   // and whether a quotation mark was among them
  std::vector<uint32_t> key_tokens_;
  bool took_open_key_ = false;
  std::vector<ItemToken> item_tokens_;
  std::vector<NodeId> exit_nodes_;         // of the terminal mask in the making
  std::vector<uint32_t> uncertain_nodes_;  // of one walk

  uint64_t last_work_ = 0;  // of the automaton
  // The last ending that was asked for: in free text it is asked for at every node.
  NodeId asked_node_ = kNothing;
  StackId asked_stack_ = 0;
  Ending asked_;
};

}  // namespace onpolicy::grammar
