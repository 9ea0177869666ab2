#include "sampler/scores.h"

#include <algorithm>

#include "sampler/logit-values.h"

namespace onpolicy {
namespace {

void FindBest(const RowScan& scan, size_t k, SamplerScratch& scratch, RowResult& result) {
  const float* row = scan.tiles.row;
  const float threshold =
      std::max(LowerBoundOfBest(k, scratch.maxima.data(), scan.tiles.blocks, {}, scratch.values),
               -std::numeric_limits<float>::max());
  CollectAtLeast(scan, nullptr, scratch.maxima.data(), threshold, *scratch.kernels, scratch.best);

  std::vector<uint64_t>& keys = scratch.keys;
  keys.clear();
  for (size_t i = 0; i < scratch.best.count; ++i)
    keys.push_back(SortKey(scratch.best.values[i], static_cast<uint32_t>(scratch.best.ids[i])));
  const auto end = keys.begin() + static_cast<std::ptrdiff_t>(std::min(k, keys.size()));
  if (end != keys.end()) std::nth_element(keys.begin(), end, keys.end());
  std::sort(keys.begin(), end);
  for (auto key = keys.begin(); key != end; ++key) {
    const int32_t id = static_cast<int32_t>(IndexOfKey(*key));
    result.top_ids.push_back(id);
    result.top_logprobs.push_back(scan.Logprob(row[id]));
  }
  // If fewer tokens are possible than requested, impossible ones are added, lowest id first.
  for (size_t id = 0; id < scan.tiles.vocab_size && result.top_ids.size() < k; ++id) {
    if (row[id] != kMinusInfinity) continue;
    result.top_ids.push_back(static_cast<int32_t>(id));
    result.top_logprobs.push_back(kMinusInfinity);
  }
}

int32_t CountAtLeast(const RowScan& scan, float value, const SamplerScratch& scratch) {
  const RowTiles& tiles = scan.tiles;
  if (value == kMinusInfinity) return static_cast<int32_t>(tiles.vocab_size);
  size_t count = 0;
  for (size_t t = 0; t < tiles.tiles; ++t)
    count += scratch.kernels->count_at_least(tiles.Tile(t), tiles.BlockCount(t),
                                             scratch.maxima.data() + tiles.FirstBlock(t), value);
  return static_cast<int32_t>(count);
}

}  // namespace

void RowResult::Clear(RowStatus with) {
  status = with;
  token = -1;
  is_final = false;
  forced.clear();
  drafts.clear();
  drafts_to_check = 0;
  logprob = 0;
  surprise = 0;
  rank = 0;
  top_ids.clear();
  top_logprobs.clear();
  candidate_ids.clear();
  candidate_scores.clear();
  candidate_logprobs.clear();
}

void ScoreScan(const RowScan& scan, int32_t token, const Alternatives& others, SamplerScratch& scratch, RowResult& result) {
  const float value = scan.tiles.row[token];
  result.logprob = scan.Logprob(value);
  result.top_ids.assign(others.ids.begin(), others.ids.end());
  result.top_logprobs.clear();
  for (const int32_t id : others.ids) result.top_logprobs.push_back(scan.Logprob(scan.tiles.row[id]));
  const bool finds_best = others.ids.empty() && others.best > 0;
  if (finds_best) FindBest(scan, std::min(static_cast<size_t>(others.best), scan.tiles.vocab_size), scratch, result);
  const auto best = finds_best ? result.top_ids.begin() : result.top_ids.end();
  const auto place = std::find(best, result.top_ids.end(), token);
  result.rank = place != result.top_ids.end() ? static_cast<int32_t>(place - best) + 1 : CountAtLeast(scan, value, scratch);
}

void ScoreRow(const float* logits, int32_t vocab_size, int32_t token, const Alternatives& others, SamplerScratch& scratch,
              RowResult& result) {
  result.Clear();
  const RowScan scan =
      ScanRow({.row = logits, .vocab_size = static_cast<size_t>(vocab_size), .log_sum = true}, scratch);
  if (scan.has_nan) {
    result.status = RowStatus::kNotNumbers;
    return;
  }
  result.token = token;
  ScoreScan(scan, token, others, scratch, result);
}

}  // namespace onpolicy
