#include "trainer/runs.h"

#include <algorithm>
#include <string>

#include "kernels/attention/kernels.h"

namespace onpolicy::training {
namespace {

bool HasOrder(const PackedRow& row, const std::vector<int32_t>& places) {
  const int32_t first = row.positions[static_cast<size_t>(places[0])];
  for (size_t i = 0; i < places.size(); ++i)
    if (row.positions[static_cast<size_t>(places[i])] != first + static_cast<int32_t>(i)) return false;
  return true;
}

// Returns the last token before `i` that it sees, or -1.
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

std::vector<TokenRun> TokenRunsOf(const PackedRow& row, int64_t window) {
  std::vector<TokenRun> runs;
  for (int64_t start = 0, end = 0; start < row.size(); start = end) {
    for (end = start + 1; end < row.size() && AreAlike(row, start, end);) ++end;
    TokenRun run{.start = start, .count = end - start, .places = {}, .seen = 0};
    for (int64_t j = 0; j < end; ++j)
      if (Sees(row, std::max(start, j), j)) run.places.push_back(static_cast<int32_t>(j));
    run.seen = static_cast<int64_t>(run.places.size()) - run.count;
    if (window > 0 && !HasOrder(row, run.places)) return {};
    run.places.resize((run.places.size() + attention::kBlockCells - 1) / attention::kBlockCells * attention::kBlockCells);
    runs.push_back(std::move(run));
  }
  return runs;
}

StatePlan PlanStates(const PackedRow& row) {
  StatePlan plan;
  std::vector<int64_t> run_of(static_cast<size_t>(row.size()));
  for (int64_t i = 0; i < row.size(); ++i) {
    const bool continues = i > 0 && AreAlike(row, i, i - 1);
    const int64_t previous = continues ? i - 1 : Previous(row, i);
    if (!continues) {
      const int64_t parent = previous < 0 ? -1 : run_of[static_cast<size_t>(previous)];
      if (previous >= 0) RequireSequence(row, i, previous);
      plan.runs.push_back({.start = i, .count = 0, .parent = parent});
    }
    ++plan.runs.back().count;
    run_of[static_cast<size_t>(i)] = static_cast<int64_t>(plan.runs.size()) - 1;
    plan.previous.push_back(static_cast<int32_t>(previous));
  }
  return plan;
}

}  // namespace onpolicy::training
