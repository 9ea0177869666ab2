// The tokens of one sequence -> drafts: tokens that may come next.
#include "engine/drafts/drafter.h"

#include <algorithm>

namespace onpolicy {
namespace {

// Number of tokens by which the place in a prediction is found again. Few suffice, because it is likely to be near.
constexpr size_t kPredictionMatch = 2;

}  // namespace

Drafter::Drafter(DraftSources sources, const int32_t* prompt, size_t count)
    : uses_text_(sources.own_text),
      answers_(std::move(sources.answers)),
      model_(std::move(sources.model)),
      uses_head_(sources.uses_head),
      key_(std::move(sources.key)),
      prompt_size_(count),
      text_(sources.min_match),
      prediction_(kPredictionMatch) {
  for (size_t i = 0; i < count; ++i) text_.Append(prompt[i]);
  for (int32_t token : sources.prediction) prediction_.Append(token);
}

void Drafter::Accept(int32_t token, uint64_t state) {
  if (state != kNoState) {
    states_.resize(text_.tokens().size() - prompt_size_, kNoState);
    states_.push_back(state);
  }
  text_.Append(token, state);
  if (at_ < proposed_.size()) {
    const bool is_right = proposed_[at_++] == token;
    last_draft_ = is_right ? LastDraft::kRight : LastDraft::kWrong;
    if (!is_right) proposed_.clear();
  } else if (proposed_.empty() && !model_ && !uses_head_) {
    last_draft_ = LastDraft::kNone;
  }
  if (!prediction_.tokens().empty()) FollowPrediction(token);
}

void Drafter::FollowPrediction(int32_t token) {
  const std::vector<int32_t>& predicted = prediction_.tokens();
  if (predicted_ < predicted.size() && misses_ <= kMostMisses) {
    misses_ = predicted[predicted_] == token ? 0 : misses_ + 1;
    ++predicted_;
    if (misses_ == 0) return;
  }
  const std::vector<int32_t>& text = text_.tokens();
  const TokenIndex::Match match = prediction_.Find(text.data(), text.size(), predicted_);
  if (match.length == 0) return;
  predicted_ = match.next;
  misses_ = 0;
}

// Prefers the longest matching text. Without a match, guesses the tokens last written in the same state of the grammar.
void Drafter::Draft(size_t limit, uint64_t state, std::vector<int32_t>* draft) const {
  draft->clear();
  const std::vector<int32_t>& predicted = prediction_.tokens();
  if (predicted_ < predicted.size() && misses_ <= kMostMisses) {
    const auto from = predicted.begin() + static_cast<std::ptrdiff_t>(predicted_);
    draft->assign(from, from + static_cast<std::ptrdiff_t>(std::min(limit, predicted.size() - predicted_)));
    return;
  }
  const std::vector<int32_t>& text = text_.tokens();
  TokenIndex::Match match;
  if (uses_text_) match = text_.Find(text.data(), text.size(), text.size());
  if (answers_ && answers_->Draft(text.data(), text.size(), match.length, limit, draft) > 0) return;
  if (uses_text_ && match.length == 0) match = text_.FindState(state);
  if (match.length > 0) return DraftFromText(match, limit, draft);
  if (answers_) answers_->DraftInState(state, limit, draft);
}

// A match near the end of the text repeats: the draft continues with its own tokens.
void Drafter::DraftFromText(const TokenIndex::Match& match, size_t limit, std::vector<int32_t>* draft) const {
  const std::vector<int32_t>& text = text_.tokens();
  for (size_t at = match.next; draft->size() < limit; ++at)
    draft->push_back(at < text.size() ? text[at] : (*draft)[at - text.size()]);
}

}  // namespace onpolicy
