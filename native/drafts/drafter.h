// The tokens of one sequence -> drafts: tokens that may come next. A draft is a guess: it never decides what is sampled.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "drafts/answer-index.h"
#include "drafts/draft-model.h"
#include "drafts/token-index.h"

namespace onpolicy {

// Where the drafts of a sequence come from.
struct DraftSources {
  size_t min_match = 3;              // tokens before a draft that must match
  bool own_text = true;              // prompt and output
  std::vector<int32_t> prediction;   // what the request says that the answer will be; may be empty
  std::shared_ptr<AnswerIndex> answers;  // of other requests, or null
  std::shared_ptr<DraftModel> model;     // drafts where nothing else does, or null
  bool uses_head = false;                // the model's own head does so, if it has one
  std::string key;                       // sequences share what the model has computed only within one key
};

// What became of the draft for the last token.
enum class LastDraft { kRight, kWrong, kNone };
constexpr size_t kLastDrafts = 3;

// One per sequence. Not thread-safe.
class Drafter {
 public:
  Drafter(DraftSources sources, const int32_t* prompt, size_t count);

  // The next token of the sequence. `state`: the grammar's when it was written.
  void Accept(int32_t token, uint64_t state = kNoState);

  // Replaces `draft` by at most `limit` tokens that may follow. `state`: the grammar's now.
  void Draft(size_t limit, uint64_t state, std::vector<int32_t>* draft) const;

  // What the caller takes for the tokens that follow, to learn from those that come.
  void Propose(const std::vector<int32_t>& drafts) {
    proposed_ = drafts;
    at_ = 0;
  }
  LastDraft last_draft() const { return last_draft_; }

  // The grammar's state when the token at `place` was written.
  uint64_t StateAt(size_t place) const {
    return place < prompt_size_ || place - prompt_size_ >= states_.size() ? kNoState : states_[place - prompt_size_];
  }
  // Prompt and output.
  const std::vector<int32_t>& tokens() const { return text_.tokens(); }
  // What drafts where Draft finds nothing; may be null.
  DraftModel* model() const { return model_.get(); }
  bool uses_head() const { return uses_head_; }
  const std::string& key() const { return key_; }

 private:
  // One token that differs is taken for a replaced one. After more, the place is looked for.
  static constexpr int kMostMisses = 1;

  void FollowPrediction(int32_t token);
  void DraftFromText(const TokenIndex::Match& match, size_t limit, std::vector<int32_t>* draft) const;

  const bool uses_text_;
  const std::shared_ptr<AnswerIndex> answers_;
  const std::shared_ptr<DraftModel> model_;
  const bool uses_head_;
  const std::string key_;
  const size_t prompt_size_;
  TokenIndex text_;                // prompt and output
  std::vector<uint64_t> states_;   // (output, up to the last token under a grammar)
  TokenIndex prediction_;
  size_t predicted_ = 0;   // place of the next token in the prediction
  int misses_ = kMostMisses;  // tokens since the last that was predicted: the first one is none that was replaced
  std::vector<int32_t> proposed_;
  size_t at_ = 0;  // in `proposed_`: the next token
  LastDraft last_draft_ = LastDraft::kNone;
};

}  // namespace onpolicy
