// Matchers of the sampled rows of one step -> their masks, computed while the engine computes the logits.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/token-matcher.h"
#include "engine/drafts/token-index.h"
#include "engine/row-pool.h"
#include "sampler/sampler.h"

namespace onpolicy {

class ConstraintRows {
 public:
  // One matcher per sample; null if the sample is unconstrained. `drafted`: see RowsInput. `pool` fills the masks until Wait returns; null
  // if all samples are unconstrained.
  ConstraintRows(const std::vector<std::shared_ptr<TokenMatcher>>& matchers, const std::vector<int32_t>& drafted,
                 RowPool* pool)
      : matchers_(matchers), drafted_(drafted), masks_(pool ? matchers.size() : 0), pool_(pool) {
    if (pool_) pool_->Start(static_cast<int>(matchers_.size()), fill_);
  }
  ~ConstraintRows() {
    try {
      Wait();
    } catch (...) {  // the step has failed already
    }
  }
  ConstraintRows(const ConstraintRows&) = delete;
  ConstraintRows& operator=(const ConstraintRows&) = delete;

  // Helps to fill the masks, and returns when all are filled.
  void Wait() {
    if (RowPool* pool = std::exchange(pool_, nullptr)) pool->Finish();
  }

  // Returns the row's mask, or null if every token is allowed.
  const uint32_t* Mask(size_t sample) const {
    return sample < masks_.size() && !masks_[sample].empty() ? masks_[sample].data() : nullptr;
  }

  // Accepts a sampled token. Returns true if only the end may follow.
  bool Accept(size_t sample, int32_t token) {
    return sample < matchers_.size() && matchers_[sample] && AcceptToken(*matchers_[sample], token);
  }

  // Accepts the tokens that the constraint forces after the sampled one. Returns true if only the end may follow them.
  bool TakeForced(size_t sample, Sampler& sampler, std::vector<int32_t>* forced) {
    if (sample >= matchers_.size() || !matchers_[sample] || !sampler.MayTakeForced()) return false;
    bool is_final = false;
    for (uint32_t token : matchers_[sample]->ForcedTokens()) {
      forced->push_back(static_cast<int32_t>(token));
      sampler.Accept(forced->back());
      is_final = AcceptToken(*matchers_[sample], forced->back());
    }
    return is_final;
  }

  // Removes the first draft that the constraint does not allow, and all behind it.
  void CutDrafts(size_t sample, std::vector<int32_t>* drafts) {
    if (sample >= matchers_.size() || !matchers_[sample]) return;
    TokenMatcher& matcher = *matchers_[sample];
    size_t allowed = 0;
    while (allowed < drafts->size() && matcher.Accept(static_cast<uint32_t>((*drafts)[allowed]))) ++allowed;
    matcher.Rollback(allowed);
    drafts->resize(allowed);
  }

  // Returns the state before the last `back` tokens, or kNoState if the sample is unconstrained.
  uint64_t StateBefore(size_t sample, size_t back) const {
    return sample < matchers_.size() && matchers_[sample] ? matchers_[sample]->StateBefore(back) : kNoState;
  }

  static bool AcceptToken(TokenMatcher& matcher, int32_t token) {
    matcher.Accept(static_cast<uint32_t>(token));
    return matcher.IsFinal();
  }

  bool IsComplete(size_t sample) const {
    return sample < matchers_.size() && matchers_[sample] && matchers_[sample]->IsComplete();
  }

 private:
  bool IsDraft(size_t row) const { return row < drafted_.size() && drafted_[row] != kNoToken; }

  // Fills the masks of a sequence, each after the drafts before it. Stops at a draft that is not allowed: it is never sampled, so the masks
  // behind it are not needed.
  void Fill(size_t row) {
    if (!matchers_[row] || IsDraft(row)) return;
    TokenMatcher& matcher = *matchers_[row];
    size_t accepted = 0;
    while (!matcher.IsEnded()) {
      masks_[row].resize(matcher.mask_words());
      if (matcher.FillMask(masks_[row].data())) masks_[row].clear();
      if (!IsDraft(++row) || !matcher.Accept(static_cast<uint32_t>(drafted_[row]))) break;
      ++accepted;
    }
    matcher.Rollback(accepted);
  }

  const std::vector<std::shared_ptr<TokenMatcher>>& matchers_;
  const std::vector<int32_t>& drafted_;  // (samples) or empty
  std::vector<std::vector<uint32_t>> masks_;  // (samples) empty: every token is allowed
  RowPool* pool_;                             // while it fills masks
  const RowPool::Work fill_ = [this](int row, int) { Fill(static_cast<size_t>(row)); };
};

}  // namespace onpolicy
