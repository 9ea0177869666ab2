// The tokens of one sequence -> drafts: tokens that may come next. Drafts never change the sampled tokens.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/drafts/answer-index.h"
#include "engine/drafts/draft-model.h"
#include "engine/drafts/token-index.h"

namespace onpolicy {

// Sources of the drafts of a sequence.
struct DraftSources {
  size_t min_match = 3;              // tokens before a draft that must match
  bool own_text = true;              // prompt and output
  std::vector<int32_t> prediction;   // the answer that the request predicts; may be empty
  std::shared_ptr<AnswerIndex> answers;  // answers of other requests, or null
  std::shared_ptr<DraftModel> model;     // drafts if the other sources have none, or null
  bool uses_head = false;                // the same with the model's own head, if it has one
  std::string key;                       // the model's computed prefixes are shared only within one key
};

// Result of the draft for the last token.
enum class LastDraft { kRight, kWrong, kNone };
constexpr size_t kLastDrafts = 3;

// One per sequence. Not thread-safe.
class Drafter {
 public:
  Drafter(DraftSources sources, const int32_t* prompt, size_t count);

  // Appends the next token of the sequence. `state`: the grammar's state before it.
  void Accept(int32_t token, uint64_t state = kNoState);

  // Replaces `draft` by at most `limit` tokens that may follow. `state`: the grammar's current state.
  void Draft(size_t limit, uint64_t state, std::vector<int32_t>* draft) const;

  // Sets the drafts that the caller expects next, to compare them with the tokens that follow.
  void Propose(const std::vector<int32_t>& drafts) {
    proposed_ = drafts;
    at_ = 0;
  }
  LastDraft last_draft() const { return last_draft_; }

  // Returns the grammar's state before the token at `place`.
  uint64_t StateAt(size_t place) const {
    return place < prompt_size_ || place - prompt_size_ >= states_.size() ? kNoState : states_[place - prompt_size_];
  }
  // Prompt and output.
  const std::vector<int32_t>& tokens() const { return text_.tokens(); }
  // Model that drafts if Draft finds nothing; may be null.
  DraftModel* model() const { return model_.get(); }
  bool uses_head() const { return uses_head_; }
  const std::string& key() const { return key_; }

 private:
  // One different token counts as replaced. After more, the place in the prediction is searched again.
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
  int misses_ = kMostMisses;  // wrong tokens since the last right one; at the limit, so that the first token starts a search
  std::vector<int32_t> proposed_;
  size_t at_ = 0;  // index of the next token in `proposed_`
  LastDraft last_draft_ = LastDraft::kNone;
};

}  // namespace onpolicy
