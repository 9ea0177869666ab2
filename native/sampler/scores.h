// A scanned row and a token -> the token's log-probability and rank, and those of other tokens of the row.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "sampler/row-scan.h"

namespace onpolicy {

// Result of sampling a row of logits. src/engine/native/row-status.ts has the same numbers under the same names.
enum class RowStatus : uint8_t {
  kSampled = 0,         // the row has a token, or was scored
  kNoTokenAllowed = 1,  // masks left no token
  kNotNumbers = 2,      // the logits contain NaN
  kAwaitsEdit = 3,      // the row is masked and biased, and JavaScript has yet to edit it
  kComplete = 4,        // masks left no token, and its constraint is complete
  kPassedOver = 5,      // the row follows a draft token that was not drawn, or is not needed
};

// The result for one row. Reuse one per row slot: its vectors keep their memory.
struct RowResult {
  RowStatus status = RowStatus::kSampled;
  int32_t token = -1;           // -1 unless status is kSampled
  bool is_final = false;        // the row's constraint allows only the end after it
  std::vector<int32_t> forced;  // the only tokens that the constraint allows after it, accepted already
  std::vector<int32_t> drafts;  // tokens that may follow, if requested
  size_t drafts_to_check = 0;   // maximum number of drafts that the next step verifies
  float logprob = 0;            // of the token; -infinity is possible
  double surprise = 0;  // of the token among the remaining ones, in bits; only with mirostat and adaptive-p
  int32_t rank = 0;  // among the k best, otherwise the number of tokens at least as probable; 0: not requested
  std::vector<int32_t> top_ids;     // (alternatives) best first, lowest id first among equals; or the ids asked for
  std::vector<float> top_logprobs;  // (alternatives)

  // With SamplerPlan::candidates: the best tokens after masks and bias, best first.
  std::vector<int32_t> candidate_ids;      // (candidates) or fewer
  std::vector<float> candidate_scores;     // (candidates) log-softmax with bias over the whole vocabulary
  std::vector<float> candidate_logprobs;   // (candidates) the model's own log-softmax

  void Clear(RowStatus with = RowStatus::kSampled);
};

// The tokens of a row that are scored beside the chosen one.
struct Alternatives {
  int32_t best = 0;                   // this many of the most probable tokens
  std::span<const int32_t> ids = {};  // if not empty, exactly these tokens in this order instead
};

// Fills logprob, rank and the alternatives from a scan that has a log-sum.
void ScoreScan(const RowScan& scan, int32_t token, const Alternatives& others, SamplerScratch& scratch, RowResult& result);

// Log-softmax, rank and alternatives of one row for a given token.
void ScoreRow(const float* logits, int32_t vocab_size, int32_t token, const Alternatives& others, SamplerScratch& scratch,
              RowResult& result);

}  // namespace onpolicy
