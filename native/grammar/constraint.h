// A compiled grammar bound to a vocabulary: the memo of states and masks that all its matchers share.
// Every member function locks; matchers of one constraint may run on different threads.
#pragma once
#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/vocabulary.h"

namespace onpolicy::grammar {

using StateId = uint32_t;

class Constraint {
 public:
  // Builds the rules and returns the start symbol; called once, may keep what it makes alive in `owner`.
  Constraint(std::shared_ptr<const Vocabulary> vocabulary, std::shared_ptr<Grammar> grammar, Symbol start,
             std::vector<std::string> warnings);

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  // False when nothing at all can be generated; a constraint like that must be refused.
  bool IsSatisfiable() const { return !states_[start_].configs.empty(); }

  StateId start() const { return start_; }
  // Writes the allowed tokens of a state; `text` is what was matched so far.
  // Returns whether every token of the vocabulary is allowed.
  bool FillMask(StateId state, std::string& text, uint32_t* mask);
  // The state after a token, or no change and false. Appends the token's bytes to `text`.
  bool Accept(StateId state, uint32_t token, std::string& text, StateId* next);
  bool IsComplete(StateId state);
  // Whether nothing but the end may follow.
  bool IsFinal(StateId state);
  // Bytes that every continuation starts with, at most `limit` of them; `ends`: nothing but the end follows them.
  std::string ForcedBytes(StateId state, std::string text, size_t limit, bool* ends);
  bool IsEnded(StateId state) const { return state == ended_; }

 private:
  static constexpr uint16_t kUnknownReach = 0xFFFE;
  static constexpr StateId kUnknownState = 0xFFFFFFFF;
  static constexpr StateId kDeadState = 0xFFFFFFFE;
  struct Mask {
    uint32_t slices = 0;             // bit per slice that is allowed as a whole
    std::vector<uint32_t> tokens;     // allowed beyond those
    std::vector<uint32_t> dense;      // all of that as bits, when there is much
    bool assumes_new_key = false;     // took for granted that the key being written is new
    // Subtrees whose fate hangs on the text, as slice and node: walked each time.
    std::vector<std::pair<uint32_t, uint32_t>> uncertain;
  };
  struct State {
    std::vector<Config> configs;
    std::unique_ptr<Mask> mask;
    std::unique_ptr<std::array<StateId, 256>> next;  // by byte, where the text plays no part; kUnknownState: not known yet
  };
  // How many code points of a slice class a state takes, whatever they are.
  struct Reach {
    uint16_t depth[kSliceClasses] = {kUnknownReach, kUnknownReach, kUnknownReach, kUnknownReach};
  };

  StateId InternState(std::vector<Config> configs);
  // Appends to `out` what `configs` become after `byte`; `text` ends with that byte.
  void Step(const Config* configs, size_t count, uint8_t byte, std::string_view text, std::vector<Config>* out);
  // The state after one byte, or kDeadState. `text` need not end with the byte; `on_text`: the answer hangs on it.
  StateId Follow(StateId state, uint8_t byte, std::string& text, bool* on_text);
  void ComputeMask(StateId state, std::string& text, Mask* mask);
  // Collects the allowed tokens of the subtree of `root`, or of the whole trie (root = -1), into `tokens`. With
  // `uncertain`, subtrees whose fate hangs on the text go there instead.
  void Walk(const Slice& slice, int64_t root, StateId state, std::string& text,
            std::vector<uint32_t>* tokens, std::vector<uint32_t>* uncertain);
  uint16_t ReachOf(NodeId node, SliceClass kind);
  // Whether a state that takes text without quote and backslash lives on in its terminal, and meets no control character.
  bool IsInsideString(NodeId node);
  // Whether the end of this terminal can only be the end of the whole text.
  bool OnlyCompletes(const Config& config, std::string_view text);
  void AddTokens(int32_t token, std::vector<uint32_t>* tokens) const;
  void RemoveRepeatedKeys(const std::vector<Config>& configs, std::string& text, uint32_t* mask);
  bool IsAlive(const std::vector<Config>& configs, std::string_view bytes, std::string& text);

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::shared_ptr<Grammar> grammar_;
  std::vector<std::string> warnings_;
  std::mutex mutex_;
  std::vector<State> states_;
  std::unordered_multimap<uint64_t, StateId> state_index_;
  std::unordered_map<NodeId, Reach> reach_;
  std::unordered_map<NodeId, bool> inside_string_;
  std::unordered_map<uint64_t, bool> only_completes_;
  size_t mask_memo_words_ = 0;
  size_t tables_ = 0;  // of next states
  StateId start_ = 0;
  StateId ended_ = 0;
};

}  // namespace onpolicy::grammar
