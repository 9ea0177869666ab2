// One row of logits -> one token and its log-probabilities: the whole sampling pipeline, fused.
// Order: grammar mask, allowed ids, bad texts, min_tokens, bias, (JavaScript hook), repetition, frequency and
// presence penalty, DRY, greedy point, temperature, min_p, top_k, top_p, draw. With a sampler of chain.h, its order is used
// after the greedy point. READ FIRST.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "sampler/adjustments.h"
#include "sampler/chain.h"
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

  // Returns true if forced tokens need no logits: no log-probabilities are requested, and no mask or bias could select another
  // tokenization of the same text.
  bool MayTakeForced() const {
    return plan_->candidates == 0 && plan_->top_logprobs < 0 && plan_->logit_bias.empty() && !plan_->bad_texts &&
           !mask_.Masks(nullptr);
  }

  // Prompt tokens count for the repetition penalty and DRY only. Ids outside the vocabulary are ignored.
  void AcceptPrompt(const int32_t* ids, size_t count);

  // Accepts a generated token: updates counts, length, the state of bad texts and the position in the random stream.
  void Accept(int32_t token);

  // Accepts the token of a result of Sample. Also updates mirostat and adaptive-p with its surprise.
  void AcceptDrawn(const RowResult& result);

  // Makes these the next tokens, regardless of masks and draws.
  void Force(std::vector<int32_t> tokens) { forced_ = std::move(tokens); }

  // Accepts and appends the remaining forced tokens. Does nothing if log-probabilities are requested, as each token then needs a row.
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

  // Sample with the random number of another position in the stream.
  void SampleAt(uint64_t position, const float* logits, const uint32_t* mask, SamplerScratch& scratch,
                RowResult& result) const;

  // For a plan with candidates: finds the best tokens instead of drawing one. Ignores penalties and filters. A mask removes
  // tokens; the scores of the others stay the same.
  void FindCandidates(const float* logits, const uint32_t* mask, SamplerScratch& scratch, RowResult& result) const;

  // First half of sampling, before a JavaScript hook: writes logits with masks and bias to `row` (vocab), -infinity for masked tokens.
  void Prepare(const float* logits, const uint32_t* mask, float* row) const;

  // Second half, on the row that the hook edited. An unedited row gives the same token as Sample.
  void SampleEdited(const float* raw_logits, const float* row, SamplerScratch& scratch,
                    RowResult& result) const;

 private:
  // Returns true if any logit differs from the model's. Fills scratch.penalties.
  bool FindAdjusted(SamplerScratch& scratch) const;

  // Moves the tokens with bias or penalty out of scratch.mask into scratch.adjusted; returns their best
  // logit.
  float Adjust(const float* row, bool add_bias, SamplerScratch& scratch) const;

  // Samples once scratch.mask and scratch.adjusted are filled. `raw` is null if `row` has the raw logits.
  void Run(uint64_t position, const float* row, const float* raw, bool has_mask, float best_adjusted,
           SamplerScratch& scratch, RowResult& result) const;

  // Returns the first of the forced tokens as the result.
  void SampleForced(const float* logits, SamplerScratch& scratch, RowResult& result) const;

  // The tokens of a row that are scored beside the chosen one.
  Alternatives ShownTokens() const { return {.best = plan_->top_logprobs, .ids = plan_->logprob_ids}; }

  // Computes log-probabilities after the whole pipeline. `temperature` is that of the draw.
  void ScoreProcessed(const RowScan& scan, float temperature, SamplerScratch& scratch, RowResult& result) const;

  std::shared_ptr<const SamplerPlan> plan_;
  uint64_t seed_;
  TokenMask mask_;
  Adjustments adjustments_;
  std::optional<Dry> dry_;
  std::vector<int32_t> forced_;  // next first
  DrawMemory memory_;
};

}  // namespace onpolicy
