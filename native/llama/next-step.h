// The run-ahead step: it takes the tokens just sampled, starts while JavaScript reads them, and is used if JavaScript asks for it.
#pragma once
#include <cstdint>
#include <vector>

#include "llama/step-input.h"

namespace onpolicy {

class NextStep {
 public:
  // Lays out the step after `input`: the sampled token of each sequence that is not final. Lays out nothing where a row has no
  // token or forced tokens after it, or a sequence has two rows.
  void LayOut(const StepInput& input, const std::vector<RowResult>& samples);
  void Clear();

  bool empty() const { return input_.tokens.empty(); }
  const StepInput& input() const { return input_; }

  // Whether `step` is this one, apart from sequences that have ended.
  bool Covers(const StepInput& step) const { return !PlacesOf(step).empty(); }
  // (tokens of `step`) where each stands here; empty when `step` is another one.
  std::vector<int32_t> PlacesOf(const StepInput& step) const;

 private:
  StepInput input_;
};

}  // namespace onpolicy
