// A packed row -> the order in which a recurrent layer goes through it: runs of tokens, each from the state that another run ends with.
#pragma once
#include "kernels/delta-net.h"
#include "trainer/row.h"

namespace onpolicy::training {

struct StatePlan {
  std::vector<DeltaRun> runs;     // parents before their children
  std::vector<int32_t> previous;  // (row) the token before each in its sequence; -1: none
  std::vector<bool> is_parent;    // (runs)
};

// Fails with INVALID_REQUEST for a row with a token whose past is no sequence: it sees a token but not what that one sees.
StatePlan PlanStates(const PackedRow& row);

}  // namespace onpolicy::training
