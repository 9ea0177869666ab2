// One sequence under a constraint. Cheap to clone and to roll back: its state is one number per token.
// Use one matcher from one thread at a time; matchers of the same constraint may run in parallel. Nothing here throws.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mask/constraint.h"

namespace onpolicy::grammar {

class Matcher {
 public:
  explicit Matcher(std::shared_ptr<Constraint> constraint);

  uint32_t vocabulary_size() const { return constraint_->vocabulary().size(); }
  uint32_t mask_words() const { return constraint_->vocabulary().mask_words(); }
  // Writes `mask_words()` words, bit = token allowed. Returns whether every token is allowed.
  bool FillMask(uint32_t* mask) noexcept;
  // Whether the last mask lacks tokens because it ran out of work.
  bool IsMaskCut() const { return is_mask_cut_; }
  // False, with the state unchanged, when the token is not allowed.
  bool Accept(uint32_t token) noexcept;
  // True when end of sequence is allowed here.
  bool IsComplete() noexcept;
  // True once an end-of-sequence token was accepted.
  bool IsEnded() const noexcept { return constraint_->IsEnded(states_.back()); }
  // True when nothing but the end may follow, or it came.
  bool IsFinal() noexcept { return IsEnded() || constraint_->IsFinal(states_.back()); }
  // Tokens that every continuation starts with, split as the model would split their text.
  std::vector<uint32_t> ForcedTokens() noexcept;
  // Removes the last tokens; false when there are fewer.
  bool Rollback(size_t count) noexcept;
  std::unique_ptr<Matcher> Clone() const;
  size_t token_count() const { return states_.size() - 1; }
  // The state before the last `back` tokens; other constraints have other numbers. 0: there are fewer tokens.
  uint64_t StateBefore(size_t back) const {
    return back < states_.size() ? constraint_->NumberOf(states_[states_.size() - 1 - back]) : 0;
  }

 private:
  std::shared_ptr<Constraint> constraint_;
  std::vector<StateId> states_;       // (tokens + 1)
  std::vector<uint32_t> text_sizes_;  // (tokens + 1)
  std::string text_;
  SeenStrings seen_;
  bool is_mask_cut_ = false;
};

}  // namespace onpolicy::grammar
