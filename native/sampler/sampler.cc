#include "sampler/sampler.h"

#include <algorithm>
#include <cmath>

#include "sampler/candidates.h"
#include "sampler/chain.h"
#include "sampler/draw.h"
#include "sampler/logit-values.h"
#include "sampler/philox.h"

namespace onpolicy {
namespace {

// The stream of random numbers that decides where XTC runs.
constexpr uint32_t kXtcStream = 1;

}  // namespace

Sampler::Sampler(std::shared_ptr<const SamplerPlan> plan, uint64_t seed)
    : plan_(std::move(plan)),
      seed_(seed),
      mask_(*plan_),
      adjustments_(*plan_),
      memory_(*plan_) {
  if (plan_->dry_multiplier > 0) dry_.emplace(plan_);
}

void Sampler::AcceptPrompt(const int32_t* ids, size_t count) {
  adjustments_.AcceptPrompt(ids, count);
  if (!dry_) return;
  for (size_t i = 0; i < count; ++i)
    if (ids[i] >= 0 && ids[i] < plan_->vocab_size) dry_->Accept(ids[i]);
}

void Sampler::Accept(int32_t token) {
  mask_.Accept(token);
  adjustments_.Accept(token);
  if (dry_) dry_->Accept(token);
  if (!forced_.empty()) forced_.erase(forced_.begin());
}

void Sampler::AcceptDrawn(const RowResult& result) {
  if (HasMemory(*plan_) && forced_.empty()) memory_.Accept(*plan_, result.surprise);
  Accept(result.token);
}

void Sampler::Sample(const float* logits, const uint32_t* mask, SamplerScratch& scratch,
                     RowResult& result) const {
  SampleAt(static_cast<uint64_t>(generated()), logits, mask, scratch, result);
}

void Sampler::SampleAt(uint64_t position, const float* logits, const uint32_t* mask, SamplerScratch& scratch,
                       RowResult& result) const {
  if (!forced_.empty()) return SampleForced(logits, scratch, result);
  const bool has_mask = FindAdjusted(scratch) || mask_.Masks(mask);
  if (has_mask) mask_.Fill(mask, scratch.mask);
  const float best_adjusted = Adjust(logits, true, scratch);
  Run(position, logits, nullptr, has_mask, best_adjusted, scratch, result);
}

void Sampler::FindCandidates(const float* logits, const uint32_t* mask, SamplerScratch& scratch,
                             RowResult& result) const {
  const size_t vocab_size = static_cast<size_t>(plan_->vocab_size);
  const auto scan_row = [&](const float* row) {
    return ScanRow({.row = row, .vocab_size = vocab_size, .log_sum = true}, scratch);
  };
  result.Clear();
  const RowScan raw = scan_row(logits);
  if (raw.has_nan) return result.Clear(RowStatus::kNotNumbers);
  RowResult best;
  ScoreScan(raw, 0, {.best = plan_->candidates}, scratch, best);
  RowScan biased = raw;
  float* row = nullptr;
  if (!adjustments_.entries().empty() || mask_.Masks(mask)) {
    row = scratch.processed_row.Reserve(vocab_size);
    std::copy_n(logits, vocab_size, row);
    for (const Adjustments::Entry& entry : adjustments_.entries()) row[entry.id] += entry.bias;
    biased = scan_row(row);
    Prepare(logits, mask, row);
    ScoreScan(scan_row(row), 0, {.best = plan_->candidates}, scratch, best);
  }
  for (const int32_t id : best.top_ids) {
    const float logit = std::min(row ? row[id] : logits[id], kLargest);
    if (logit == kMinusInfinity) break;
    result.candidate_ids.push_back(id);
    result.candidate_scores.push_back(biased.Logprob(logit));
    result.candidate_logprobs.push_back(raw.Logprob(std::min(logits[id], kLargest)));
  }
  if (plan_->top_logprobs <= 0) return;
  ScoreScan(scan_row(logits), 0, {.best = plan_->top_logprobs}, scratch, best);
  result.top_ids = best.top_ids;
  result.top_logprobs = best.top_logprobs;
}

void Sampler::Prepare(const float* logits, const uint32_t* mask, float* row) const {
  const size_t vocab_size = static_cast<size_t>(plan_->vocab_size);
  std::copy_n(logits, vocab_size, row);
  for (const Adjustments::Entry& entry : adjustments_.entries()) row[entry.id] += entry.bias;
  if (!mask_.Masks(mask)) return;
  std::vector<uint32_t> allowed;
  mask_.Fill(mask, allowed);
  for (size_t word = 0; word * 32 < vocab_size; ++word) {
    if (allowed[word] == ~0u) continue;
    for (size_t id = word * 32; id < std::min(vocab_size, word * 32 + 32); ++id)
      if ((allowed[word] >> (id % 32) & 1) == 0) row[id] = kMinusInfinity;
  }
}

void Sampler::SampleEdited(const float* raw_logits, const float* row, SamplerScratch& scratch,
                           RowResult& result) const {
  if (!forced_.empty()) return SampleForced(raw_logits, scratch, result);
  const bool has_mask = FindAdjusted(scratch);
  if (has_mask) mask_.FillAll(scratch.mask);
  const float best_adjusted = Adjust(row, false, scratch);
  Run(static_cast<uint64_t>(generated()), row, raw_logits, has_mask, best_adjusted, scratch, result);
}

bool Sampler::FindAdjusted(SamplerScratch& scratch) const {
  if (dry_)
    dry_->FindPenalties(scratch);
  else
    scratch.penalties.clear();
  return !adjustments_.entries().empty() || !scratch.penalties.empty();
}

float Sampler::Adjust(const float* row, bool add_bias, SamplerScratch& scratch) const {
  scratch.adjusted.clear();
  float best = kMinusInfinity;
  const auto adjust = [&](int32_t id, float adjusted) {
    uint32_t& word = scratch.mask[static_cast<size_t>(id) / 32];
    const uint32_t bit = 1u << (id % 32);
    if ((word & bit) == 0) return;
    word &= ~bit;
    const float value = std::min(adjusted, kLargest);
    if (!(value > kMinusInfinity)) return;
    scratch.adjusted.push_back({id, value});
    best = std::max(best, value);
  };
  auto penalty = scratch.penalties.begin();
  const auto penalties_end = scratch.penalties.end();
  // A finite logit stays finite: a penalty is no mask.
  const auto subtract = [](float logit, float amount) {
    return logit == kMinusInfinity ? logit : std::max(logit - amount, -kLargest);
  };
  for (const Adjustments::Entry& entry : adjustments_.entries()) {
    for (; penalty != penalties_end && penalty->id < entry.id; ++penalty)
      adjust(penalty->id, subtract(row[penalty->id], penalty->value));
    const float biased = add_bias ? row[entry.id] + entry.bias : row[entry.id];
    const float penalised = adjustments_.Penalise(entry, biased);
    const bool repeats = penalty != penalties_end && penalty->id == entry.id;
    adjust(entry.id, repeats ? subtract(penalised, (penalty++)->value) : penalised);
  }
  for (; penalty != penalties_end; ++penalty) adjust(penalty->id, subtract(row[penalty->id], penalty->value));
  return best;
}

void Sampler::Run(uint64_t position, const float* row, const float* raw, bool has_mask, float best_adjusted,
                  SamplerScratch& scratch, RowResult& result) const {
  result.Clear();
  const bool scores = plan_->top_logprobs >= 0;
  const bool scores_this_scan = scores && !plan_->processed_logprobs && raw == nullptr;
  const bool greedy = plan_->temperature == 0;
  const float scale = greedy ? 1 : WeightScale(plan_->temperature);
  const RowScan scan = ScanRow({.row = row,
                                .vocab_size = static_cast<size_t>(plan_->vocab_size),
                                .mask = has_mask ? scratch.mask.data() : nullptr,
                                .log_sum = scores_this_scan,
                                .weights = NeedsRowWeights(*plan_),
                                .scale = scale,
                                .reference = best_adjusted},
                               scratch);
  if (scan.has_nan) return result.Clear(RowStatus::kNotNumbers);
  if (BestLogit(scan, scratch) == kMinusInfinity) return result.Clear(RowStatus::kNoTokenAllowed);

  float temperature = greedy ? 1 : plan_->temperature;
  double surprise = 0;
  const auto draw = [&] {
    const size_t drawn = DrawFromCandidates(UniformAt(seed_, position), scratch.candidates);
    result.token = scratch.candidates.ids[drawn];
    if (HasMemory(*plan_)) surprise = SurpriseOf(*plan_, drawn, scratch);
  };
  if (greedy) {
    result.token = ArgMax(scan, scratch);
  } else if (UsesChain(*plan_)) {
    temperature = FilterInChain(*plan_, memory_, UniformAt(seed_, position, kXtcStream), scan, scratch);
    draw();
  } else if (Filters(*plan_)) {
    FilterCandidates(*plan_, scan, scratch);
    draw();
  } else {
    result.token = DrawFromRow(scan, scale, UniformAt(seed_, position), scratch);
  }

  if (scores_this_scan) {
    ScoreScan(scan, result.token, ShownTokens(), scratch, result);
  } else if (scores && plan_->processed_logprobs) {
    ScoreProcessed(scan, temperature, scratch, result);
  } else if (scores) {
    ScoreRow(raw, plan_->vocab_size, result.token, ShownTokens(), scratch, result);
  }
  result.surprise = surprise;
}

void Sampler::SampleForced(const float* logits, SamplerScratch& scratch, RowResult& result) const {
  result.Clear();
  const int32_t token = forced_.front();
  if (plan_->top_logprobs >= 0) {
    const size_t vocab_size = static_cast<size_t>(plan_->vocab_size);
    float* processed = scratch.processed_row.Reserve(vocab_size);
    if (plan_->processed_logprobs) {
      std::fill_n(processed, vocab_size, kMinusInfinity);
      processed[token] = 0;
    }
    ScoreRow(plan_->processed_logprobs ? processed : logits, plan_->vocab_size, token, ShownTokens(), scratch, result);
  }
  result.token = token;
}

void Sampler::ScoreProcessed(const RowScan& scan, float temperature, SamplerScratch& scratch, RowResult& result) const {
  const size_t vocab_size = static_cast<size_t>(plan_->vocab_size);
  const bool greedy = plan_->temperature == 0;
  const float best = BestLogit(scan, scratch);
  float* processed = scratch.processed_row.Reserve(vocab_size);
  std::fill_n(processed, vocab_size, kMinusInfinity);
  // Relative to the best, so that a small temperature cannot overflow.
  if (!greedy && Filters(*plan_)) {
    const Candidates& candidates = scratch.candidates;
    for (size_t i = 0; i < candidates.count; ++i)
      processed[static_cast<size_t>(candidates.ids[i])] = (candidates.values[i] - best) / temperature;
  } else {
    for (size_t id = 0; id < vocab_size; ++id)
      if (scan.mask == nullptr || (scan.mask[id / 32] >> (id % 32) & 1) != 0)
        processed[id] = (scan.tiles.row[id] - best) / temperature;
    for (const AdjustedToken& token : scratch.adjusted)
      processed[static_cast<size_t>(token.id)] = (token.value - best) / temperature;
  }
  const int32_t token = result.token;
  ScoreRow(processed, plan_->vocab_size, token, ShownTokens(), scratch, result);
}

}  // namespace onpolicy
