// A compiled grammar bound to a vocabulary: the states and masks that all its matchers share.
// Every member function locks; matchers of one constraint may run on different threads.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/warning.h"
#include "mask/mask-cache.h"
#include "pushdown/grammar.h"

namespace onpolicy::grammar {

class Constraint {
 public:
  // Binds a compiled grammar to a vocabulary.
  Constraint(std::shared_ptr<const Vocabulary> vocabulary, std::shared_ptr<Grammar> grammar, Symbol start,
             std::vector<Warning> warnings);

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const std::vector<Warning>& warnings() const { return warnings_; }
  // False when nothing at all can be generated; a constraint like that must be refused.
  bool IsSatisfiable() const { return !states_.Configs(start_).empty(); }

  // How many masks of this process lack tokens because their work was spent.
  static uint64_t CutMasks();

  StateId start() const { return start_; }
  // A state's number among those of all constraints, never 0.
  uint64_t NumberOf(StateId state) const { return uint64_t{serial_} << 32 | state; }
  // Writes the allowed tokens of a state; `text` is what was matched so far.
  // Returns whether every token of the vocabulary is allowed. `is_cut`: some are missing, because the work was spent.
  bool FillMask(StateId state, std::string& text, uint32_t* mask, bool* is_cut);
  // The state after a token, or no change and false. Appends the token's bytes to `text`.
  bool Accept(StateId state, uint32_t token, std::string& text, StateId* next);
  // Computes the masks that texts meet first: of the start, behind each declared key, and so on. For a thread that has nothing
  // else to do while a prompt is computed: it ends with the first mask that a matcher asks for. Returns how many masks.
  size_t WarmUp();
  bool IsComplete(StateId state);
  // Whether only the end may follow.
  bool IsFinal(StateId state);
  // Bytes that every continuation starts with, at most `limit` of them; `ends`: only the end follows them.
  std::string ForcedBytes(StateId state, std::string text, size_t limit, bool* ends);
  bool IsEnded(StateId state) const { return state == ended_; }

 private:
  // Adds the tokens that a format names. Returns whether there are any.
  bool AllowNamedTokens(StateId state, uint32_t* mask) const;

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::shared_ptr<Grammar> grammar_;
  std::vector<Warning> warnings_;
  std::mutex mutex_;
  std::atomic<bool> is_asked_{false};  // a matcher asked for a mask
  StateTable states_;
  MaskCache masks_;
  StateId start_ = 0;
  StateId ended_ = 0;
  const uint32_t serial_;  // counted from 1
};

}  // namespace onpolicy::grammar
