// The tokens of one sequence -> drafts: tokens that may come next. A draft is a guess: it never decides what is sampled.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "drafts/answer-index.h"
#include "drafts/token-index.h"

namespace onpolicy {

// Where the drafts of a sequence come from.
struct DraftSources {
  size_t min_match = 3;              // tokens that must have stood before a draft
  bool own_text = true;              // prompt and output
  std::vector<int32_t> prediction;   // what the request says that the answer will be; may be empty
  std::shared_ptr<AnswerIndex> answers;  // of other requests, or null
};

// One per sequence. Not thread-safe.
class Drafter {
 public:
  Drafter(DraftSources sources, const int32_t* prompt, size_t count);

  // The next token of the sequence.
  void Accept(int32_t token);

  // Replaces `draft` by at most `limit` tokens that may follow.
  void Draft(size_t limit, std::vector<int32_t>* draft) const;

 private:
  void FollowPrediction(int32_t token);
  void DraftFromText(const TokenIndex::Match& match, size_t limit, std::vector<int32_t>* draft) const;

  const size_t min_match_;
  const bool uses_text_;
  const std::shared_ptr<AnswerIndex> answers_;
  TokenIndex text_;        // prompt and output
  TokenIndex prediction_;
  size_t predicted_ = 0;   // place of the next token in the prediction
  int misses_ = 0;         // tokens since the last that was predicted
};

}  // namespace onpolicy
