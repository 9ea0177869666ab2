// The run-ahead step: it takes the tokens just sampled and the drafts after them, starts while JavaScript reads them, and is used
// if JavaScript asks for it.
#pragma once
#include <cstdint>
#include <vector>

#include "llama/step-input.h"

namespace onpolicy {

class NextStep {
 public:
  // Lays out the step after `input`: of each sequence that is not final the sampled token and the drafts after it, as many as
  // it may have. Its edits cut the drafts of `input` that were not sampled. Lays out nothing where a row has no token or
  // forced tokens after it, or a sequence is sampled twice.
  void LayOut(const StepInput& input, const std::vector<RowResult>& samples);
  void Clear();

  bool empty() const { return input_.tokens.empty(); }
  const StepInput& input() const { return input_; }

  // Whether `step` is this one, apart from sequences that have ended and drafts that are left out.
  bool Covers(const StepInput& step) const { return !PlacesOf(step).empty(); }
  // Whether `step` has all of its tokens and no others, and leaves its sequences as they are.
  bool IsAll(const StepInput& step) const;
  // Whether it has one token of each of so many sequences.
  bool IsOneTokenEach(size_t sequences) const;
  // (tokens of `step`) where each stands here; empty when `step` is another one.
  std::vector<int32_t> PlacesOf(const StepInput& step) const;

 private:
  // Whether the edits of `step` are edits of this one, or only free the cache of sequences outside: those may run after it.
  bool HasEdits(const StepInput& step) const;

  StepInput input_;
};

}  // namespace onpolicy
