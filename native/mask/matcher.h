// One sequence under a constraint. Cheap to clone and to roll back: its state is one number per token.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/token-matcher.h"
#include "mask/constraint.h"

namespace onpolicy::grammar {

class Matcher final : public TokenMatcher {
 public:
  explicit Matcher(std::shared_ptr<Constraint> constraint);

  uint32_t vocabulary_size() const noexcept override { return constraint_->vocabulary().size(); }
  bool FillMask(uint32_t* mask) noexcept override;
  // Whether the last mask lacks tokens because it ran out of work.
  bool IsMaskCut() const { return is_mask_cut_; }
  bool Accept(uint32_t token) noexcept override;
  bool IsComplete() noexcept override;
  bool IsEnded() const noexcept override { return constraint_->IsEnded(states_.back()); }
  bool IsFinal() noexcept override { return IsEnded() || constraint_->IsFinal(states_.back()); }
  std::span<const uint32_t> ForcedTokens() noexcept override;
  bool Rollback(size_t count) noexcept override;
  std::unique_ptr<Matcher> Clone() const;
  size_t token_count() const { return states_.size() - 1; }
  uint64_t StateBefore(size_t back) const noexcept override {
    return back < states_.size() ? constraint_->NumberOf(states_[states_.size() - 1 - back]) : 0;
  }

 private:
  std::shared_ptr<Constraint> constraint_;
  std::vector<StateId> states_;       // (tokens + 1)
  std::vector<uint32_t> text_sizes_;  // (tokens + 1)
  std::string text_;
  std::vector<uint32_t> forced_;      // what ForcedTokens returned
  bool is_mask_cut_ = false;
};

}  // namespace onpolicy::grammar
