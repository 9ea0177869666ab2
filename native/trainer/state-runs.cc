#include "trainer/state-runs.h"

#include <string>

namespace onpolicy::training {
namespace {

// The last token before `i` that it sees; -1: none.
int64_t Previous(const PackedRow& row, int64_t i) {
  int64_t previous = i - 1;
  while (previous >= 0 && !Sees(row, i, previous)) --previous;
  return previous;
}

void RequireSequence(const PackedRow& row, int64_t i, int64_t previous) {
  for (int64_t j = 0; j < previous; ++j)
    if (Sees(row, i, j) != Sees(row, previous, j))
      throw Failure("INVALID_REQUEST", "parentIds: token " + std::to_string(i) + " does not see what token " + std::to_string(previous) +
                                           " before it sees; a model with recurrent layers needs sequences");
}

}  // namespace

StatePlan PlanStates(const PackedRow& row) {
  StatePlan plan;
  std::vector<int64_t> run_of(static_cast<size_t>(row.size()));
  for (int64_t i = 0; i < row.size(); ++i) {
    const bool continues = i > 0 && AreAlike(row, i, i - 1);
    const int64_t previous = continues ? i - 1 : Previous(row, i);
    if (!continues) {
      const int64_t parent = previous < 0 ? -1 : run_of[static_cast<size_t>(previous)];
      if (previous >= 0) {
        RequireSequence(row, i, previous);
        plan.is_parent[static_cast<size_t>(parent)] = true;
      }
      plan.runs.push_back({.start = i, .count = 0, .parent = parent});
      plan.is_parent.push_back(false);
    }
    ++plan.runs.back().count;
    run_of[static_cast<size_t>(i)] = static_cast<int64_t>(plan.runs.size()) - 1;
    plan.previous.push_back(static_cast<int32_t>(previous));
  }
  return plan;
}

}  // namespace onpolicy::training
