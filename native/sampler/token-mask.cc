// Grammar mask, allowed ids, bad texts and min_tokens -> one bit per token.
#include "sampler/token-mask.h"

#include <algorithm>

namespace onpolicy {
namespace {

size_t WordCount(const SamplerPlan& plan) { return (static_cast<size_t>(plan.vocab_size) + 31) / 32; }

size_t PaddedWordCount(const SamplerPlan& plan) {
  return (static_cast<size_t>(plan.vocab_size) + kBlockSize - 1) / kBlockSize * 2;
}

void ClearBit(std::vector<uint32_t>& mask, int32_t id) {
  mask[static_cast<size_t>(id) / 32] &= ~(1u << (id % 32));
}

}  // namespace

TokenMask::TokenMask(const SamplerPlan& plan) : plan_(&plan), always_(plan.allowed) {
  if (!plan.bad_texts) return;
  for (const int32_t id : plan.bad_texts->always()) {
    if (always_.empty()) always_.assign(WordCount(plan), ~0u);
    ClearBit(always_, id);
  }
}

void TokenMask::Accept(int32_t token) {
  ++generated_;
  if (plan_->bad_texts) bad_state_ = plan_->bad_texts->After(bad_state_, token);
}

bool TokenMask::Masks(const uint32_t* grammar) const {
  bool any = grammar != nullptr || !always_.empty();
  if (!any) ForEachBanned([&](int32_t) { any = true; });
  return any;
}

void TokenMask::Fill(const uint32_t* grammar, std::vector<uint32_t>& mask) const {
  const size_t words = WordCount(*plan_);
  mask.resize(PaddedWordCount(*plan_));
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

void TokenMask::FillAll(std::vector<uint32_t>& mask) const { mask.assign(PaddedWordCount(*plan_), ~0u); }

}  // namespace onpolicy
