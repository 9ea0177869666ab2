// The walk over a vocabulary's tries that collects the tokens which a state allows.
#pragma once
#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "grammar/mask/state-table.h"
#include "grammar/mask/terminal-mask.h"
#include "grammar/mask/text-reach.h"
#include "grammar/mask/vocabulary.h"
#include "grammar/regex/clamp.h"

namespace onpolicy::grammar {

// A token, and the number of its bytes behind the comma before an item. kAnyRest: the token is always rechecked.
constexpr uint32_t kAnyRest = 0xFFFFFFFFu;
struct ItemToken {
  uint32_t token, rest;
  auto operator<=>(const ItemToken&) const = default;
};

class MaskWalk {
 public:
  // All of them must outlive this.
  MaskWalk(const Vocabulary& vocabulary, Grammar& grammar, StateTable& states, TextReach& reach);

  // Divides the work limit of all following masks. For tests of reaching the limit.
  static void DivideWork(uint64_t divisor) { divisor_ = divisor; }
  // Begins a mask, whose walks share a work limit. Once it is reached, only tokens of one byte are found, which suffice to continue any
  // text.
  void Begin(uint64_t work);
  // Returns true if the walks since Begin reached the work limit.
  bool IsSpent() const { return budget_.IsSpent(Phase::kMask); }
  // Adds the tokens of a slice that `state` allows to `tokens`. Subtrees that depend on the text are added to `uncertain` instead. `first`:
  // the bytes that the state accepts.
  void WalkSlice(const Slice& slice, const ByteSet& first, StateId state, MatchedText& text,
                 std::vector<uint32_t>* tokens, std::vector<uint32_t>* uncertain);
  // Does the same for such a subtree, with the current text.
  void WalkSubtree(const TriePlace& place, StateId state, MatchedText& text, std::vector<uint32_t>* tokens);
  // Returns the tokens inside the terminal of `node`, independent of what follows it: in one mask, or for large counts in one for short
  // tokens and one for long ones. `completes`: the terminal can only end with the whole text, so that no token leaves it.
  std::vector<std::shared_ptr<const TerminalMask>> WalkTerminal(NodeId node, bool completes);
  // Adds the tokens that continue behind the exits of a terminal.
  void WalkExits(const TerminalMask& mask, NodeId node, StackId stack, MatchedText& text, std::vector<uint32_t>* tokens,
                 std::vector<TriePlace>* uncertain);
  // Tokens found since `Begin` that may contain whole keys that were assumed to be new.
  const std::vector<uint32_t>& key_tokens() const { return key_tokens_; }
  // Returns true if a key that began before the token was assumed to be new.
  bool took_open_key() const { return took_open_key_; }
  // Key lists of objects for which a further key was assumed to differ from all keys in the list.
  const std::vector<const KeyNames*>& assumed_names() const { return grammar_.assumed_names(); }
  // Tokens in which an item ends or begins that was assumed to be new.
  const std::vector<ItemToken>& item_tokens() const { return item_tokens_; }

 private:
  // State of the walk at one depth. A single parse is stepped by its automaton's row alone.
  struct Level {
    const NodeId* row;  // null for several parses
    NodeId node;
    StackId stack;
    StateId state;      // state of several parses
    bool completes;     // the terminal can only end with the whole text
  };

  // Returns true if the work for single bytes is used up. At least one token is always found.
  bool IsBeyond(const std::vector<uint32_t>& tokens) const { return budget_.IsSpent(Phase::kStep) && !tokens.empty(); }
  // Sets the walk's state at a depth to `node`, inside a terminal.
  void SetInside(size_t depth, NodeId node) {
    levels_[depth].row = grammar_.regex().Row(node);
    levels_[depth].node = node;
  }
  // Returns that state's entry for a byte, without kAcceptBit where no token leaves the terminal.
  NodeId EntryInside(size_t depth, uint8_t byte) {
    const NodeId known = levels_[depth].row[byte];
    return (known == kUnasked ? grammar_.regex().Entry(levels_[depth].node, byte) : known) & entry_bits_;
  }
  Level LevelOf(StateId state);
  Level LevelOf(const Config& parse);
  // Walks the nodes below a node whose level is set.
  void RunBelow(const TokenTrie& tokens_by_bytes, uint32_t node, MatchedText& text, std::vector<uint32_t>* tokens,
                std::vector<uint32_t>* uncertain);
  void Run(const TokenTrie& tokens_by_bytes, uint32_t at, uint32_t end, MatchedText& text, std::vector<uint32_t>* tokens,
           std::vector<uint32_t>* uncertain);
  // Collects the tokens that stay inside one terminal, and the places that leave it. Returns false if there are too many places.
  bool RunInside(uint32_t slice, uint32_t at, uint32_t end, TerminalMask* mask);
  bool RunInsideBelow(uint32_t slice, uint32_t node, TerminalMask* mask);
  // Collects the short tokens of an ASCII alphabet that stay inside a terminal, treating like bytes in one step. Returns false if that does
  // not give all tokens: the terminal may end, distinguishes bytes in many tokens, or the work limit was reached.
  bool RunAlike(const TokenTrie& alike, NodeId node, TerminalMask* mask);
  bool RunEach(std::span<const uint32_t> tokens, size_t depth, NodeId node, TerminalMask* mask);
  void Add(std::span<const uint32_t> tokens, TerminalMask* mask) const {
    if (tokens.empty()) return;
    if (mask->dense.empty()) return AddToList(tokens, mask);
    uint32_t* const bits = mask->dense.data();
    for (uint32_t token : tokens) bits[token >> 5] |= 1u << (token & 31);
  }
  // Lists of many tokens are converted to bits.
  void AddToList(std::span<const uint32_t> tokens, TerminalMask* mask) const;
  // Returns the bytes that a state takes, or null if it is cheaper to try the children of the node.
  const ByteSet* BytesToAsk(const TrieNode& node, NodeId state);
  enum class Length : uint8_t { kAny, kShort, kLong };
  // Returns the state without the upper limit of its count, if it is a count of characters up to the end of a JSON string; else kNothing.
  NodeId WithoutLimit(NodeId node);
  // Writes the alphabets' tokens that a state with such a limit allows, from those of the state without it. Returns false if these are not
  // known.
  bool TakeUpToLimit(NodeId node, TerminalMask* mask);
  // Returns the part of a terminal mask for tokens of a length.
  std::shared_ptr<const TerminalMask> WalkPart(NodeId node, Length length);
  // Returns the mask of a form: cached for all pools, or computed by `fill`, which returns false if the mask should not be cached.
  template <typename Fill>
  std::shared_ptr<const TerminalMask> Cached(const Form& form, Fill fill);
  bool AddExit(NodeId node, const TriePlace& place, size_t depth, TerminalMask* mask);
  // Records the tokens below a node of a trie that depend on assumptions made since `before`.
  void NoteAssumptions(const Grammar::Assumptions& before, const TokenTrie& trie, uint32_t at, bool after_quote);
  // Writes the bytes of a place to `path_`.
  void SetPath(const TriePlace& place);
  // Returns the ending of a parse whose automaton has reached `node` at `depth`.
  Ending EndingOf(NodeId node, StackId stack, size_t depth, MatchedText& text);

  static inline std::atomic<uint64_t> divisor_{1};
  const Vocabulary& vocabulary_;
  Grammar& grammar_;
  StateTable& states_;
  TextReach& reach_;
  Budget& budget_;
  CountClamp short_, long_;    // for tokens of up to kShortBytes, and for all
  std::vector<Level> levels_;  // by depth
  std::string path_;           // bytes from the root down to the node
  size_t root_depth_ = 0;      // number of bytes before the root,
  bool after_quote_ = false;   // and true if they include a quotation mark
  std::vector<uint32_t> key_tokens_;
  bool took_open_key_ = false;
  std::vector<ItemToken> item_tokens_;
  NodeId entry_bits_ = ~NodeId{0};         // of entries inside a terminal
  std::vector<NodeId> exit_nodes_;         // exits of the terminal mask being computed
  std::vector<uint32_t> uncertain_nodes_;  // reused for each walk
};

}  // namespace onpolicy::grammar
