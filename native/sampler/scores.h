// A scanned row and a token -> the token's log-probability and rank, and the k best of the row.
#pragma once
#include <cstdint>
#include <vector>

#include "sampler/row-scan.h"

namespace onpolicy {

// What became of a row of logits. src/native/row-status.ts has the same numbers under the same names.
enum class RowStatus : uint8_t {
  kSampled = 0,         // it has a token; or it was scored
  kNoTokenAllowed = 1,  // masks left no token
  kNotNumbers = 2,      // the logits hold NaN
  kAwaitsEdit = 3,      // it is masked and biased, and JavaScript has not edited it
  kComplete = 4,        // masks left no token, and its constraint is complete
  kPassedOver = 5,      // it follows a draft: another token came in its place, or no row was needed here
};

// The result for one row. Reuse one per row slot: its vectors keep their memory.
struct RowResult {
  RowStatus status = RowStatus::kSampled;
  int32_t token = -1;           // -1 unless status is kSampled
  bool is_final = false;        // the row's constraint allows only the end after it
  std::vector<int32_t> forced;  // the only tokens that the constraint allows after it, accepted already
  std::vector<int32_t> drafts;  // that may follow, where they are asked for
  size_t drafts_to_check = 0;   // of these, how many the next step checks at most
  float logprob = 0;            // of the token; -infinity is possible
  double surprise = 0;  // of the token in bits, among those that were left: with mirostat
  int32_t rank = 0;  // among the k best, else the number of tokens at least as probable; 0: not asked for
  std::vector<int32_t> top_ids;     // (k) best first, lowest id first among equals
  std::vector<float> top_logprobs;  // (k)

  // With SamplerPlan::candidates: the best tokens that masks and bias leave, best first.
  std::vector<int32_t> candidate_ids;      // (candidates) or fewer
  std::vector<float> candidate_scores;     // (candidates) log-softmax with bias over the whole vocabulary
  std::vector<float> candidate_logprobs;   // (candidates) the model's own log-softmax

  void Clear(RowStatus with = RowStatus::kSampled);
};

// Fills logprob, rank and the k best from a scan that has a log-sum.
void ScoreScan(const RowScan& scan, int32_t token, int32_t k, SamplerScratch& scratch, RowResult& result);

// Log-softmax, rank and k best of one row for a given token.
void ScoreRow(const float* logits, int32_t vocab_size, int32_t token, int32_t k, SamplerScratch& scratch,
              RowResult& result);

}  // namespace onpolicy
