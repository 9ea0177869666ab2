// A compiled grammar bound to a vocabulary: the states and masks that all its matchers share. Every member function locks, so that matchers
// of one constraint may run on different threads. Cached results that do not depend on the text are read concurrently.
#pragma once
#include <atomic>
#include <memory>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/spec-error.h"
#include "grammar/mask/mask-cache.h"
#include "grammar/pushdown/grammar.h"
#include "grammar/pushdown/token-limits.h"

namespace onpolicy::grammar {

class Constraint {
 public:
  // Binds a compiled grammar to a vocabulary.
  Constraint(std::shared_ptr<const Vocabulary> vocabulary, std::shared_ptr<Grammar> grammar, Symbol start,
             std::vector<Warning> warnings);

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const std::vector<Warning>& warnings() const { return warnings_; }
  // False if no text can be generated; such a constraint must be refused.
  bool IsSatisfiable() const { return !states_.Configs(start_).empty(); }

  // Work done so far, see Budget.
  uint64_t work() const {
    std::shared_lock lock(mutex_);
    return grammar_->regex().budget().spent();
  }
  // Returns the number of this process's masks that lack tokens because their work limit was reached.
  static uint64_t CutMasks();

  StateId start() const { return start_; }
  // Returns a number that identifies a state among those of all constraints; never 0.
  uint64_t NumberOf(StateId state) const { return uint64_t{serial_} << 32 | state; }
  // Writes the allowed tokens of a state; `text` is the text matched so far. Returns true if every token of the vocabulary is allowed. Sets
  // `is_cut` if tokens are missing because the work limit was reached.
  bool FillMask(StateId state, MatchedText& text, uint32_t* mask, bool* is_cut);
  // Sets `next` to the state after a token and appends the token's bytes to `text`. Returns false, and changes nothing, if the token is not
  // allowed.
  bool Accept(StateId state, uint32_t token, MatchedText& text, StateId* next);
  // Computes the masks that texts meet first: of the start, behind each declared key, and so on. Meant for an idle thread while a prompt is
  // computed: it stops when a matcher asks for its first mask. Returns the number of masks.
  size_t WarmUp();
  bool IsComplete(StateId state);
  // Returns true if only the end may follow.
  bool IsFinal(StateId state);
  // Returns the bytes that every continuation starts with, at most `limit`. Sets `ends` if only the end follows them. `text` is the text
  // matched so far; it is unchanged when this returns.
  std::string ForcedBytes(StateId state, MatchedText& text, size_t limit, bool* ends);
  bool IsEnded(StateId state) const { return state == ended_; }

 private:
  // Text that every continuation of a state starts with. `ends`: only the end follows it.
  struct Forced {
    std::string bytes;
    bool ends = false;
  };
  // A state before the next token.
  struct TokenStart {
    StateId spent;      // limits in tokens have one token less
    StateId unlimited;  // the same without the limits: its mask is that of the state
  };
  static constexpr size_t kKnownMoves = 1u << 18;   // tokens by state that are cached
  static constexpr size_t kKnownForced = 1u << 12;  // forced texts that are cached

  // Must be called without the lock.
  TokenStart StartOf(StateId state);
  // Must be called with the lock held.
  TokenStart MakeStart(StateId state);
  std::vector<Config> ConfigsAfter(StateId state, uint32_t token, MatchedText& text);
  Forced ForcedFrom(StateId state, MatchedText& text, size_t limit);
  // Adds the end and the tokens that a format names. Returns true if every token is allowed.
  bool Complete(StateId state, uint32_t* mask) const;
  // Adds the tokens that a format names. Returns true if there are any.
  bool AllowNamedTokens(StateId state, uint32_t* mask) const;

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::shared_ptr<Grammar> grammar_;
  std::vector<Warning> warnings_;
  mutable std::shared_mutex mutex_;
  std::atomic<bool> is_asked_{false};  // true once a matcher has asked for a mask
  StateTable states_;
  TokenLimits limits_;
  const bool has_token_limits_;
  MaskCache masks_;
  std::unordered_map<StateId, TokenStart> starts_;  // by state, if the grammar has limits in tokens
  HashIndex moves_;                              // state and token -> the next state, if it does not depend on the text
  std::unordered_map<StateId, Forced> forced_;  // by state, if it does not depend on the text
  StateId start_ = 0;
  StateId ended_ = 0;
  const uint32_t serial_;  // counted from 1
};

}  // namespace onpolicy::grammar
