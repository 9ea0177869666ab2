// A packed row -> runs of its tokens: those of one sequence each for attention, and those of the states of recurrent layers.
#pragma once
#include "kernels/delta-net.h"
#include "trainer/row.h"

namespace onpolicy::training {

// Adjacent tokens of one group.
struct TokenRun {
  int64_t start, count;
  // The token at each place of the sequence: the tokens that the run sees before it, then its own tokens. Padded to whole blocks of attention.
  std::vector<int32_t> places;
  int64_t seen;  // places before those of the run
};

// `window` is that of the layers with one, or 0. Returns an empty list if places of a sequence differ from its positions, which windows use.
std::vector<TokenRun> TokenRunsOf(const PackedRow& row, int64_t window);

// Runs of tokens. Each begins with the end state of another run.
struct StatePlan {
  std::vector<DeltaRun> runs;     // parents before their children
  std::vector<int32_t> previous;  // (row) the token before each in its sequence; -1: none
};

// Fails with INVALID_REQUEST if the past of a token is not a sequence: it sees a token, but not all that this token sees.
StatePlan PlanStates(const PackedRow& row);

}  // namespace onpolicy::training
