// Grammar mask, allowed ids, bad texts and min_tokens -> one bit per token.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "sampler/kernels.h"
#include "sampler/sampler-plan.h"

namespace onpolicy {

class TokenMask {
 public:
  // Keeps a pointer to `plan`.
  explicit TokenMask(const SamplerPlan& plan) : plan_(&plan), always_(plan.allowed) {
    if (!plan.bad_texts) return;
    for (const int32_t id : plan.bad_texts->always()) {
      if (always_.empty()) always_.assign(WordCount(), ~0u);
      ClearBit(always_, id);
    }
  }

  // Accepts a generated token. Bad texts and min_tokens apply to generated tokens only.
  void Accept(int32_t token) {
    ++generated_;
    if (plan_->bad_texts) bad_state_ = plan_->bad_texts->After(bad_state_, token);
  }

  // While held, the tokens that end a sequence are masked.
  void HoldEnd(bool is_held) { is_end_held_ = is_held; }

  int32_t generated() const { return generated_; }

  // Returns true if any token is masked at this step. `grammar` may be null.
  bool Masks(const uint32_t* grammar) const {
    bool any = grammar != nullptr || !always_.empty();
    if (!any) ForEachBanned([&](int32_t) { any = true; });
    return any;
  }

  // Writes the allowed tokens as bits: two words per block of the row, zero past the vocabulary.
  void Fill(const uint32_t* grammar, std::vector<uint32_t>& mask) const {
    const size_t words = WordCount();
    mask.resize(PaddedWordCount());
    if (grammar != nullptr && !always_.empty()) {
      for (size_t i = 0; i < words; ++i) mask[i] = grammar[i] & always_[i];
    } else if (grammar != nullptr) {
      std::copy_n(grammar, words, mask.begin());
    } else if (!always_.empty()) {
      std::copy_n(always_.begin(), words, mask.begin());
    } else {
      std::fill(mask.begin(), mask.end(), ~0u);
    }
    if (plan_->vocab_size % 32 != 0) mask[words - 1] &= (1u << (plan_->vocab_size % 32)) - 1;
    std::fill(mask.begin() + static_cast<std::ptrdiff_t>(words), mask.end(), 0u);
    ForEachBanned([&](int32_t id) { ClearBit(mask, id); });
  }

  // Writes a mask that allows every token.
  void FillAll(std::vector<uint32_t>& mask) const { mask.assign(PaddedWordCount(), ~0u); }

 private:
  size_t WordCount() const { return (static_cast<size_t>(plan_->vocab_size) + 31) / 32; }
  size_t PaddedWordCount() const { return (static_cast<size_t>(plan_->vocab_size) + kBlockSize - 1) / kBlockSize * 2; }
  static void ClearBit(std::vector<uint32_t>& mask, int32_t id) { mask[static_cast<size_t>(id) / 32] &= ~(1u << (id % 32)); }

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
