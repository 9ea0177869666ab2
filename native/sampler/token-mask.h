// Grammar mask, allowed ids, bad texts and min_tokens -> one bit per token.
#pragma once
#include <cstdint>
#include <vector>

#include "sampler/kernels.h"
#include "sampler/sampler-plan.h"

namespace onpolicy {

class TokenMask {
 public:
  // Keeps a pointer to `plan`.
  explicit TokenMask(const SamplerPlan& plan);

  // A generated token: bad texts and min_tokens look at generated tokens only.
  void Accept(int32_t token);

  // While held, the tokens that end a sequence are masked.
  void HoldEnd(bool is_held) { is_end_held_ = is_held; }

  int32_t generated() const { return generated_; }

  // Whether anything is masked at this step; `grammar` may be null.
  bool Masks(const uint32_t* grammar) const;

  // Writes the allowed tokens as bits: two words per block of the row, zero past the vocabulary.
  void Fill(const uint32_t* grammar, std::vector<uint32_t>& mask) const;

  // Writes a mask that allows every token.
  void FillAll(std::vector<uint32_t>& mask) const;

 private:
  // Calls `ban` with each id that this step's context forbids: completions of bad texts, stop ids until min_tokens, and
  // end ids while the end is held.
  template <class Ban>
  void ForEachBanned(Ban ban) const {
    if (plan_->bad_texts) plan_->bad_texts->ForEachCompletion(bad_state_, ban);
    if (generated_ < plan_->min_tokens)
      for (const int32_t id : plan_->stop_ids) ban(id);
    if (is_end_held_)
      for (const int32_t id : plan_->end_ids) ban(id);
  }

  const SamplerPlan* plan_;
  std::vector<uint32_t> always_;  // (words) allowed at every step; empty: all
  uint32_t bad_state_ = 0;        // of the bad texts
  int32_t generated_ = 0;
  bool is_end_held_ = false;
};

}  // namespace onpolicy
