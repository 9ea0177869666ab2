// The walk over a vocabulary's tries that collects the tokens which a state allows.
#pragma once
#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "mask/state-table.h"
#include "mask/terminal-mask.h"
#include "mask/text-reach.h"
#include "mask/vocabulary.h"
#include "regex/clamp.h"

namespace onpolicy::grammar {

// A token, and how many of its bytes follow the comma before an item. kAnyRest: it is checked in any case.
constexpr uint32_t kAnyRest = 0xFFFFFFFFu;
struct ItemToken {
  uint32_t token, rest;
  auto operator<=>(const ItemToken&) const = default;
};

class MaskWalk {
 public:
  // All of them must outlive this.
  MaskWalk(const Vocabulary& vocabulary, Grammar& grammar, StateTable& states, TextReach& reach);

  // Divides the work of all masks that begin from now on: for tests of what happens when it is spent.
  static void DivideWork(uint64_t divisor) { divisor_ = divisor; }
  // Begins a mask, whose walks share so much work. Once it is spent, only tokens of one byte are found, which are enough to
  // continue any text.
  void Begin(uint64_t work);
  // Whether the walks since then were cut short.
  bool IsSpent() const { return budget_.IsSpent(Phase::kMask); }
  // Adds the tokens of a slice that `state` allows to `tokens`. Subtrees that depend on the text go to `uncertain`
  // instead. `first` are the bytes that the state accepts.
  void WalkSlice(const Slice& slice, const ByteSet& first, StateId state, std::string& text,
                 std::vector<uint32_t>* tokens, std::vector<uint32_t>* uncertain);
  // The same for one such subtree, now that the text is known.
  void WalkSubtree(const TriePlace& place, StateId state, std::string& text, std::vector<uint32_t>* tokens);
  // The tokens inside of the terminal of `node`, independent of what follows it: in one mask, or with large counts in one for
  // short tokens and one for long ones.
  std::vector<std::shared_ptr<const TerminalMask>> WalkTerminal(NodeId node);
  // Adds the tokens that continue behind the exits of a terminal.
  void WalkExits(const TerminalMask& mask, NodeId node, StackId stack, std::string& text, std::vector<uint32_t>* tokens,
                 std::vector<TriePlace>* uncertain);
  // Tokens found since `Begin` that may contain whole keys which were assumed to be new.
  const std::vector<uint32_t>& key_tokens() const { return key_tokens_; }
  // Whether a key that began before the token was assumed to be new.
  bool took_open_key() const { return took_open_key_; }
  // The keys that objects name whose further keys were assumed to be others.
  const std::vector<const KeyNames*>& assumed_names() const { return grammar_.assumed_names(); }
  // Tokens in which an item ends or begins that was assumed to be new.
  const std::vector<ItemToken>& item_tokens() const { return item_tokens_; }

 private:
  // Where the walk stands at one depth. A state of one parse is stepped by its automaton's row alone.
  struct Level {
    const NodeId* row;  // null for several parses
    NodeId node;
    StackId stack;
    StateId state;      // of several parses
    bool completes;     // the terminal can only end with the whole text
  };

  // Whether the work for single bytes is spent; at least one token is always found.
  bool IsBeyond(const std::vector<uint32_t>& tokens) const { return budget_.IsSpent(Phase::kStep) && !tokens.empty(); }
  // Puts the walk inside of a terminal at a depth.
  void SetInside(size_t depth, NodeId node) {
    levels_[depth].row = grammar_.regex().Row(node);
    levels_[depth].node = node;
  }
  // The entry of that state for a byte.
  NodeId EntryInside(size_t depth, uint8_t byte) {
    const NodeId known = levels_[depth].row[byte];
    return known == kUnasked ? grammar_.regex().Entry(levels_[depth].node, byte) : known;
  }
  Level LevelOf(StateId state);
  Level LevelOf(const Config& parse);
  // Walks what follows a node, whose level is known.
  void RunBelow(const TokenTrie& tokens_by_bytes, uint32_t node, std::string& text, std::vector<uint32_t>* tokens,
                std::vector<uint32_t>* uncertain);
  void Run(const TokenTrie& tokens_by_bytes, uint32_t at, uint32_t end, std::string& text, std::vector<uint32_t>* tokens,
           std::vector<uint32_t>* uncertain);
  // Collects what stays inside of one terminal, and the places that leave it; false when these are too many.
  bool RunInside(uint32_t slice, uint32_t at, uint32_t end, TerminalMask* mask);
  bool RunInsideBelow(uint32_t slice, uint32_t node, TerminalMask* mask);
  // Collects the short tokens of an ASCII alphabet that stay inside of a terminal, with like bytes in one step. False where this
  // is not all: the terminal may end there, tells bytes apart at many tokens, or the work is spent.
  bool RunAlike(const TokenTrie& alike, NodeId node, TerminalMask* mask);
  bool RunEach(std::span<const uint32_t> tokens, size_t depth, NodeId node, TerminalMask* mask);
  void Add(std::span<const uint32_t> tokens, TerminalMask* mask) const {
    if (tokens.empty()) return;
    if (mask->dense.empty()) return AddToList(tokens, mask);
    uint32_t* const bits = mask->dense.data();
    for (uint32_t token : tokens) bits[token >> 5] |= 1u << (token & 31);
  }
  // With many tokens the list becomes bits.
  void AddToList(std::span<const uint32_t> tokens, TerminalMask* mask) const;
  // The bytes that a state takes, where it is worth to ask for them before the children of a node are looked at.
  const ByteSet* BytesToAsk(const TrieNode& node, NodeId state);
  enum class Length : uint8_t { kAny, kShort, kLong };
  // The state without the upper limit of its count, where it is that many characters of a JSON string up to its end; else
  // kNothing.
  NodeId WithoutLimit(NodeId node);
  // The tokens of the alphabets that a state with such a limit allows, from those without it. False where these are not known.
  bool TakeUpToLimit(NodeId node, TerminalMask* mask);
  // The part for tokens of a length.
  std::shared_ptr<const TerminalMask> WalkPart(NodeId node, Length length);
  // The mask of a form: cached for all pools, or made by `fill`, which returns false where the mask is not worth caching.
  template <typename Fill>
  std::shared_ptr<const TerminalMask> Cached(const Form& form, Fill fill);
  bool AddExit(NodeId node, const TriePlace& place, size_t depth, TerminalMask* mask);
  // Records the tokens below a node of a trie that rest on assumptions made since `before`.
  void NoteAssumptions(const Grammar::Assumptions& before, const TokenTrie& trie, uint32_t at, bool after_quote);
  // Writes the bytes of a place to `path_`.
  void SetPath(const TriePlace& place);
  // The ending of a parse whose automaton has reached `node` at `depth`.
  Ending EndingOf(NodeId node, StackId stack, size_t depth, std::string& text);

  static inline std::atomic<uint64_t> divisor_{1};
  const Vocabulary& vocabulary_;
  Grammar& grammar_;
  StateTable& states_;
  TextReach& reach_;
  Budget& budget_;
  CountClamp short_, long_;    // for tokens of up to kShortBytes, and for all
  std::vector<Level> levels_;  // by depth
  std::string path_;           // bytes from the root down to the node
  size_t root_depth_ = 0;      // how many bytes there were before the root,
  bool after_quote_ = false;   // and whether a quotation mark was among them
  std::vector<uint32_t> key_tokens_;
  bool took_open_key_ = false;
  std::vector<ItemToken> item_tokens_;
  std::vector<NodeId> exit_nodes_;         // of the terminal mask in the making
  std::vector<uint32_t> uncertain_nodes_;  // of one walk
};

}  // namespace onpolicy::grammar
