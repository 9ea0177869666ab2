// Rows of logits -> sampled tokens and scores, on a few threads. Independent of the engine that computed the rows.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "rows/constraint-rows.h"
#include "rows/row-pool.h"
#include "sampler/sampler.h"

namespace onpolicy {

// The work on the rows of one step.
struct RowsInput {
  std::vector<std::shared_ptr<Sampler>> samplers;           // several may share one row
  std::vector<std::shared_ptr<grammar::Matcher>> matchers;  // (samplers) or empty; null: the sample is free
  std::vector<int32_t> hooked;      // (hooked) index into samplers, ascending: JavaScript edits these rows
  std::vector<int32_t> score_rows;  // (scores, 3): row, scored token, number of alternatives
};

struct RowsOutput {
  std::vector<RowResult> samples;  // (samplers)
  std::vector<RowResult> scores;   // (scores)
};

class RowSampler {
 public:
  RowSampler(int32_t vocab_size, int32_t threads)
      : vocab_size_(vocab_size), rows_(threads), scratch_(static_cast<size_t>(threads)) {}

  int32_t vocab_size() const { return vocab_size_; }

  // Begins a step: forgets the hooked rows of the last run, whose logits go away, and starts to fill the masks.
  // `matchers` must outlive the result.
  ConstraintRows Constrain(const std::vector<std::shared_ptr<grammar::Matcher>>& matchers);

  // `logits` (samplers + scores): rows (vocab) of the samples, then of the scores. Those of hooked samples must stay where
  // they are until Finish or the next step. `constraints`: what Constrain returned for this step.
  void Run(const RowsInput& input, const std::vector<const float*>& logits, ConstraintRows& constraints,
           RowsOutput* output);

  // The masked and biased row (vocab) of the last run's hooked sample `index`, to be edited; null when none waits.
  float* PreparedRow(size_t index) {
    return index < hooked_.size() && hooked_[index].raw ? hooked_[index].prepared.data() : nullptr;
  }

  // Samples rows of the last run that were edited, by index into RowsInput::hooked.
  Status Finish(const std::vector<int32_t>& indices, std::vector<RowResult>* results);

 private:
  void Sample(const RowsInput& input, size_t sample, const float* values, ConstraintRows& constraints,
              SamplerScratch& scratch, RowResult& result);

  const int32_t vocab_size_;
  RowPool rows_;
  std::unique_ptr<RowPool> masks_;       // made by the first constrained step: one thread, idle between steps
  std::vector<SamplerScratch> scratch_;  // one per worker
  // Rows of the last run that wait for JavaScript. Their memory is kept for the next ones.
  struct HookedRow {
    const float* raw = nullptr;  // (vocab) in the engine's output, until the next pass
    std::shared_ptr<Sampler> sampler;
    std::shared_ptr<grammar::Matcher> matcher;
    std::vector<float> prepared;  // (vocab)
  };
  std::vector<HookedRow> hooked_;
};

}  // namespace onpolicy
