// One row of logits -> one token and its log-probabilities: the whole sampling pipeline, fused.
// Order: grammar mask, allowed ids, bad texts, min_tokens, bias, (JavaScript hook), repetition, frequency and
// presence penalty, DRY, greedy point, temperature, min_p, top_k, top_p, draw. With a sampler of chain.h, its order is used
// behind the greedy point. READ FIRST.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "sampler/adjustments.h"
#include "sampler/dry.h"
#include "sampler/sampler-plan.h"
#include "sampler/sampler-scratch.h"
#include "sampler/scores.h"
#include "sampler/token-mask.h"

namespace onpolicy {

// One per sequence. Not thread-safe, but rows of different samplers may be sampled at once, each thread with
// its own scratch. The plan must be valid: ids inside the vocabulary, temperature >= 0, penalties finite.
class Sampler {
 public:
  Sampler(std::shared_ptr<const SamplerPlan> plan, uint64_t seed);

  const SamplerPlan& plan() const { return *plan_; }
  int32_t generated() const { return mask_.generated(); }

  // Whether forced tokens need no logits: no log-probabilities are wanted, and no mask or bias asks for another spelling
  // of the same text.
  bool MayTakeForced() const {
    return plan_->candidates == 0 && plan_->top_logprobs < 0 && plan_->logit_bias.empty() && !plan_->bad_texts &&
           !mask_.Masks(nullptr);
  }

  // Prompt tokens count for the repetition penalty and DRY only. Ids outside the vocabulary are ignored.
  void AcceptPrompt(const int32_t* ids, size_t count);

  // A generated token: counts, length, the state of bad texts and the place in the random stream.
  void Accept(int32_t token);

  // The token of a result of Sample: mirostat also learns how surprising it was.
  void AcceptDrawn(const RowResult& result);

  // The next tokens are these, whatever masks and draws say.
  void Force(std::vector<int32_t> tokens) { forced_ = std::move(tokens); }

  // Accepts the forced tokens that are left and appends them. Where log-probabilities are wanted it does nothing: each needs a row.
  template <class OnToken>
  void TakeForced(OnToken on_token) {
    if (plan_->candidates != 0 || plan_->top_logprobs >= 0) return;
    while (!forced_.empty()) {
      const int32_t token = forced_.front();
      Accept(token);
      on_token(token);
    }
  }

  // Masks the plan's end ids until it is called with false.
  void HoldEnd(bool is_held) { mask_.HoldEnd(is_held); }

  // `logits` (vocab) raw, never modified, may be shared by several samplers. `mask` (vocab / 32, rounded up)
  // is the grammar's, bit = allowed, or null.
  void Sample(const float* logits, const uint32_t* mask, SamplerScratch& scratch, RowResult& result) const;

  // The same with the random number of another place in the stream.
  void SampleAt(uint64_t position, const float* logits, const uint32_t* mask, SamplerScratch& scratch,
                RowResult& result) const;

  // For a plan with candidates: the best tokens instead of one. Ignores penalties and filters. A mask removes
  // tokens; the scores of the others stay the same.
  void FindCandidates(const float* logits, const uint32_t* mask, SamplerScratch& scratch, RowResult& result) const;

  // Around a JavaScript hook: first half, masks and bias into `row` (vocab), -infinity for a masked token.
  void Prepare(const float* logits, const uint32_t* mask, float* row) const;

  // Second half, on the edited row. An unedited row gives the same token as Sample.
  void SampleEdited(const float* raw_logits, const float* row, SamplerScratch& scratch,
                    RowResult& result) const;

 private:
  // Whether any logit differs from the model's. Fills scratch.penalties.
  bool FindAdjusted(SamplerScratch& scratch) const;

  // Moves the tokens with bias or penalty out of scratch.mask into scratch.adjusted; returns their best
  // logit.
  float Adjust(const float* row, bool add_bias, SamplerScratch& scratch) const;

  // scratch.mask and scratch.adjusted are ready. `raw` is null when `row` itself holds the raw logits.
  void Run(uint64_t position, const float* row, const float* raw, bool has_mask, float best_adjusted,
           SamplerScratch& scratch, RowResult& result) const;

  // The first of the forced tokens.
  void SampleForced(const float* logits, SamplerScratch& scratch, RowResult& result) const;

  // Log-probabilities after the whole pipeline. `temperature`: of the draw.
  void ScoreProcessed(const RowScan& scan, float temperature, SamplerScratch& scratch, RowResult& result) const;

  std::shared_ptr<const SamplerPlan> plan_;
  uint64_t seed_;
  TokenMask mask_;
  Adjustments adjustments_;
  std::optional<Dry> dry_;
  std::vector<int32_t> forced_;  // next first
  double surprise_bound_;  // of mirostat, in bits
};

}  // namespace onpolicy
