// A scanned row and a token -> the token's log-probability and rank, and the k best of the row.
#pragma once
#include <cstdint>
#include <vector>

#include "sampler/row-scan.h"

namespace onpolicy {

enum class SampleStatus : uint8_t {
  kOk = 0,
  kNoAllowedToken = 1,  // masks left nothing
  kNotANumber = 2,      // the row holds a NaN
  kPrepared = 3,        // masked and biased: JavaScript edits the row before it is sampled
  kComplete = 4,        // masks left nothing, and the row's constraint is complete
};

// What becomes of one row. Reuse one per row slot: its vectors keep their memory.
struct RowResult {
  SampleStatus status = SampleStatus::kOk;
  int32_t token = -1;  // -1 unless status is kOk
  bool is_final = false;  // the constraint of this row lets nothing but the end follow
  std::vector<int32_t> forced;  // tokens that the constraint leaves no choice about, taken right after it
  float logprob = 0;   // of the token; -infinity is possible
  int32_t rank =
      0;  // place among the k best, else the number of tokens at least as probable; 0: not asked for
  std::vector<int32_t> top_ids;     // (k) best first, lowest id first among equals
  std::vector<float> top_logprobs;  // (k)

  // With SamplerPlan::candidates: the best tokens that masks and bias leave, best first.
  std::vector<int32_t> candidate_ids;      // (candidates) or fewer
  std::vector<float> candidate_scores;     // (candidates) log-softmax with bias over the whole vocabulary
  std::vector<float> candidate_logprobs;   // (candidates) the model's own log-softmax

  void Clear(SampleStatus with = SampleStatus::kOk);
};

// Fills logprob, rank and the k best from a scan that has a log-sum.
void ScoreScan(const RowScan& scan, int32_t token, int32_t k, SamplerScratch& scratch, RowResult& result);

// Log-softmax, rank and k best of one row for a given token.
void ScoreRow(const float* logits, int32_t vocab_size, int32_t token, int32_t k, SamplerScratch& scratch,
              RowResult& result);

}  // namespace onpolicy
