// A compiled grammar bound to a vocabulary: the memo of states and masks that all its matchers share.
// Every member function locks; matchers of one constraint may run on different threads.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "mask/mask-walk.h"
#include "mask/repeats.h"
#include "mask/state-table.h"
#include "mask/text-reach.h"
#include "mask/vocabulary.h"
#include "pushdown/grammar.h"

namespace onpolicy::grammar {

class Constraint {
 public:
  // Binds a compiled grammar to a vocabulary.
  Constraint(std::shared_ptr<const Vocabulary> vocabulary, std::shared_ptr<Grammar> grammar, Symbol start,
             std::vector<std::string> warnings);

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  // False when nothing at all can be generated; a constraint like that must be refused.
  bool IsSatisfiable() const { return !states_.Configs(start_).empty(); }

  StateId start() const { return start_; }
  // Writes the allowed tokens of a state; `text` is what was matched so far, and `seen` reads it.
  // Returns whether every token of the vocabulary is allowed. `is_cut`: some are missing, for want of work.
  bool FillMask(StateId state, std::string& text, SeenStrings* seen, uint32_t* mask, bool* is_cut);
  // The state after a token, or no change and false. Appends the token's bytes to `text`.
  bool Accept(StateId state, uint32_t token, std::string& text, StateId* next);
  bool IsComplete(StateId state);
  // Whether nothing but the end may follow.
  bool IsFinal(StateId state);
  // Bytes that every continuation starts with, at most `limit` of them; `ends`: nothing but the end follows them.
  std::string ForcedBytes(StateId state, std::string text, size_t limit, bool* ends);
  bool IsEnded(StateId state) const { return state == ended_; }

 private:
  struct Mask {
    std::vector<std::shared_ptr<const TerminalMask>> terminals;  // what stays inside of the terminals
    uint32_t slices = 0;           // bit per slice that is allowed as a whole
    std::vector<uint32_t> tokens;  // allowed beyond those
    std::vector<uint32_t> dense;   // all of these as bits, when there are many
    RepeatCheck::Tokens assumed;   // that rest on an assumption
    // Subtrees whose fate hangs on the text: walked each time.
    std::vector<TriePlace> uncertain;
  };

  // constraint-mask.cc
  void ComputeMask(StateId state, std::string& text, Mask* mask);
  void WalkSlices(StateId state, std::string& text, Mask* mask);
  void WriteMask(const Mask& found, uint32_t* mask) const;
  void KeepBits(const uint32_t* bits, Mask* mask);
  std::shared_ptr<const TerminalMask> TerminalOf(NodeId node);
  Mask* FindMask(StateId state, std::string& text, Mask* fresh);
  void AllowNamedTokens(StateId state, uint32_t* mask, bool* open) const;

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::shared_ptr<Grammar> grammar_;
  std::vector<std::string> warnings_;
  std::mutex mutex_;
  StateTable states_;
  TextReach reach_;
  MaskWalk walk_;
  RepeatCheck repeats_;
  std::vector<std::unique_ptr<Mask>> masks_;  // by state, null until computed
  std::vector<std::shared_ptr<const TerminalMask>> terminals_;  // by automaton state, null until asked for
  size_t mask_memo_words_ = 0;
  std::vector<uint32_t> tokens_, uncertain_;  // used by one mask at a time
  StateId start_ = 0;
  StateId ended_ = 0;
};

}  // namespace onpolicy::grammar
