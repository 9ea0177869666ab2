// A packed row -> runs of its tokens: of one sequence each, for attention, and as a recurrent layer goes through them.
#pragma once
#include "kernels/delta-net.h"
#include "trainer/row.h"

namespace onpolicy::training {

// Tokens side by side of one group.
struct TokenRun {
  int64_t start, count;
  // The token at each place of the sequence: what the run sees before it, then its own tokens. Padded to whole blocks of attention.
  std::vector<int32_t> places;
  int64_t seen;  // places before those of the run
};

// `window`: of the layers that have one; 0: none has. Empty where places of a sequence cannot stand for its positions, which a window counts.
std::vector<TokenRun> TokenRunsOf(const PackedRow& row, int64_t window);

// Runs of tokens, each from the state that another run ends with.
struct StatePlan {
  std::vector<DeltaRun> runs;     // parents before their children
  std::vector<int32_t> previous;  // (row) the token before each in its sequence; -1: none
};

// Fails with INVALID_REQUEST for a row with a token whose past is no sequence: it sees a token but not what that one sees.
StatePlan PlanStates(const PackedRow& row);

}  // namespace onpolicy::training
