// Rows of logits -> sampled tokens and scores, on a few threads. Independent of the engine that computed the rows.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "engine/constraint-rows.h"
#include "engine/drafts/drafter.h"
#include "engine/row-pool.h"
#include "sampler/sampler.h"

namespace onpolicy {

// Work on the rows of one step.
struct RowsInput {
  std::vector<std::shared_ptr<Sampler>> samplers;           // several may share one row
  std::vector<std::shared_ptr<TokenMatcher>> matchers;  // (samplers) or empty; null: the sample is unconstrained
  // (samplers) or empty: the draft that the row stands on; it has the sampler of the row before. kNoToken for the first row of a sequence.
  // A row counts only if the token sampled before it is its draft.
  std::vector<int32_t> drafted;
  std::vector<std::shared_ptr<Drafter>> drafters;  // (samplers) or empty; used for first rows; null: no drafts
  // (samplers, 3) or empty: maximum of drafts that the next step checks, by the result of the last one. One draft is made even if none is
  // checked, to measure how often drafts are right.
  std::vector<int32_t> draft_limits;
  std::vector<int32_t> hooked;      // (hooked) index into samplers, ascending: JavaScript edits these rows
  std::vector<int32_t> score_rows;  // (scores, 3): row, scored token, number of alternatives

  size_t DraftLimit(size_t sample, LastDraft last) const {
    return static_cast<size_t>(draft_limits[kLastDrafts * sample + static_cast<size_t>(last)]);
  }
  bool IsDraft(size_t sample) const { return !drafted.empty() && drafted[sample] != kNoToken; }
  bool HasDrafts() const {
    return std::any_of(drafted.begin(), drafted.end(), [](int32_t token) { return token != kNoToken; });
  }
  // Returns the sample after the last one of the sequence that begins at `first`.
  size_t EndOfSequence(size_t first) const {
    size_t end = first + 1;
    while (end < samplers.size() && IsDraft(end)) ++end;
    return end;
  }
};

struct RowsOutput {
  std::vector<RowResult> samples;  // (samplers)
  std::vector<RowResult> scores;   // (scores)
  DraftWork draft_work;            // cost of draft models
  bool is_ahead = false;           // the next token of every sampled sequence is always computed
};

class RowSampler {
 public:
  RowSampler(int32_t vocab_size, int32_t threads)
      : vocab_size_(vocab_size), rows_(threads), scratch_(static_cast<size_t>(threads)) {}

  int32_t vocab_size() const { return vocab_size_; }
  // Sets the draft model for drafters that use the model's own head; null for none.
  void SetHead(DraftModel* head) { head_ = head; }

  // Begins a step: forgets the hooked rows of the last run, whose logits are overwritten, and starts to fill the masks. `input` must
  // outlive the result.
  ConstraintRows Constrain(const RowsInput& input);

  // `logits` (samplers + scores): rows (vocab) of the samples, then of the scores. Those of hooked samples must stay valid until Finish or
  // the next step. `constraints`: the result of Constrain for this step.
  void Run(const RowsInput& input, const std::vector<const float*>& logits, ConstraintRows& constraints,
           RowsOutput* output);

  // Returns the masked and biased row (vocab) of the last run's hooked sample `index`, to be edited. Returns null if it is not waiting.
  float* PreparedRow(size_t index) {
    return index < hooked_.size() && hooked_[index].raw ? hooked_[index].prepared.data() : nullptr;
  }

  // Samples edited rows of the last run, by index into RowsInput::hooked. Returns all samples of that run.
  std::vector<RowResult> Finish(const std::vector<int32_t>& indices);

 private:
  // Samples the rows of a sequence from `sample` on, while each draft equals the token sampled before it.
  void SampleSequence(const RowsInput& input, size_t sample, const std::vector<const float*>& logits,
                      ConstraintRows& constraints, SamplerScratch& scratch, std::vector<RowResult>& results);
  // Drafts with draft models for the sequences that have no other drafts, all at once.
  void DraftWithModels(const RowsInput& input, RowsOutput* output);
  void Sample(const RowsInput& input, size_t sample, const float* values, ConstraintRows& constraints,
              SamplerScratch& scratch, RowResult& result);

  DraftModel* ModelOf(const Drafter& drafter) const { return drafter.model() ? drafter.model() : drafter.uses_head() ? head_ : nullptr; }

  const int32_t vocab_size_;
  DraftModel* head_ = nullptr;
  RowPool rows_;
  std::vector<int> undrafted_;  // (samplers) for first rows: the row behind which a draft model should draft; -1: none
  std::unique_ptr<RowPool> masks_;       // made by the first constrained step: one thread, idle between steps
  std::vector<SamplerScratch> scratch_;  // one per worker
  // Rows of the last run that wait for JavaScript. Their memory is reused.
  struct HookedRow {
    size_t sample = 0;           // index into RowsInput::samplers
    const float* raw = nullptr;  // (vocab) in the engine's output, until the next pass
    std::shared_ptr<Sampler> sampler;
    std::shared_ptr<TokenMatcher> matcher;
    std::vector<float> prepared;  // (vocab)
  };
  std::vector<HookedRow> hooked_;
  std::vector<RowResult> samples_;  // results of the last run, if some of its rows are hooked
};

}  // namespace onpolicy
