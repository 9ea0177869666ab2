#include "trainer/token-runs.h"

#include <algorithm>

#include "attention/kernels.h"

namespace onpolicy::training {
namespace {

bool HasOrder(const PackedRow& row, const std::vector<int32_t>& places) {
  const int32_t first = row.positions[static_cast<size_t>(places[0])];
  for (size_t i = 0; i < places.size(); ++i)
    if (row.positions[static_cast<size_t>(places[i])] != first + static_cast<int32_t>(i)) return false;
  return true;
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

}  // namespace onpolicy::training
