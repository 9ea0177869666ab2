// One sequence under a constraint. Cheap to clone and to roll back, because its state is one number per token.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/token-matcher.h"
#include "grammar/mask/constraint.h"

namespace onpolicy::grammar {

class Matcher final : public TokenMatcher {
 public:
  explicit Matcher(std::shared_ptr<Constraint> constraint);

  uint32_t vocabulary_size() const noexcept override { return constraint_->vocabulary().size(); }
  bool FillMask(uint32_t* mask) noexcept override;
  // Returns true if the last mask lacks tokens because the work limit was reached.
  bool IsMaskCut() const { return is_mask_cut_; }
  bool Accept(uint32_t token) noexcept override;
  bool IsComplete() noexcept override;
  bool IsEnded() const noexcept override { return constraint_->IsEnded(states_.back()); }
  bool IsFinal() noexcept override { return IsEnded() || constraint_->IsFinal(states_.back()); }
  std::span<const uint32_t> ForcedTokens() noexcept override;
  bool Rollback(size_t count) noexcept override;
  std::unique_ptr<Matcher> Clone() const;
  const Constraint& constraint() const { return *constraint_; }
  size_t token_count() const { return states_.size() - 1; }
  uint64_t StateBefore(size_t back) const noexcept override {
    return back < states_.size() ? constraint_->NumberOf(states_[states_.size() - 1 - back]) : 0;
  }

 private:
  std::shared_ptr<Constraint> constraint_;
  std::vector<uint32_t> tokens_;      // accepted
  std::vector<StateId> states_;       // (tokens + 1)
  std::vector<uint32_t> text_sizes_;  // (tokens + 1)
  MatchedText text_;
  std::vector<uint32_t> forced_;      // result of ForcedTokens
  bool is_mask_cut_ = false;
};

}  // namespace onpolicy::grammar
