// Finished answers -> drafts for texts that continue like one of them. Its memory is limited: the oldest answers are dropped.
#include "engine/drafts/answer-index.h"

#include <algorithm>

namespace onpolicy {
namespace {

// Appends the tokens from `at` on to `draft`, until it has `limit` tokens or the answer ends.
void Copy(const std::vector<int32_t>& tokens, size_t at, size_t limit, std::vector<int32_t>* draft) {
  for (; draft->size() < limit && tokens[at] != kNoToken; ++at) draft->push_back(tokens[at]);
}

}  // namespace

AnswerIndex::AnswerIndex(size_t min_match, size_t max_bytes)
    : min_match_(min_match),
      half_bytes_(max_bytes / 2),
      new_(std::make_unique<TokenIndex>(min_match)),
      old_(std::make_unique<TokenIndex>(min_match)) {}

void AnswerIndex::Add(const int32_t* tokens, size_t count, const std::vector<uint64_t>& states) {
  std::lock_guard<std::mutex> lock(mutex_);
  const size_t token_bytes = kBytesPerToken + (states.empty() ? 0 : kBytesPerState);
  const size_t most = half_bytes_ / token_bytes;
  count = std::min(count, most > 0 ? most - 1 : 0);
  if (count == 0) return;
  if (new_->cost() + (count + 1) * token_bytes > half_bytes_) {
    old_ = std::move(new_);
    new_ = std::make_unique<TokenIndex>(min_match_);
  }
  for (size_t i = 0; i < count; ++i) new_->Append(tokens[i], states.empty() ? kNoState : states[i]);
  new_->Append(kNoToken);
}

size_t AnswerIndex::Draft(const int32_t* text, size_t count, size_t longer_than, size_t limit,
                          std::vector<int32_t>* draft) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const TokenIndex* best = nullptr;
  TokenIndex::Match match{longer_than, 0};
  for (const TokenIndex* index : {new_.get(), old_.get()}) {
    const TokenIndex::Match found = index->Find(text, count, index->tokens().size());
    if (found.length <= match.length || index->tokens()[found.next] == kNoToken) continue;
    match = found;
    best = index;
  }
  if (!best) return 0;
  Copy(best->tokens(), match.next, limit, draft);
  return match.length;
}

bool AnswerIndex::DraftInState(uint64_t state, size_t limit, std::vector<int32_t>* draft) const {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const TokenIndex* index : {new_.get(), old_.get()}) {
    const TokenIndex::Match found = index->FindState(state);
    if (found.length == 0) continue;
    Copy(index->tokens(), found.next, limit, draft);
    return true;
  }
  return false;
}

size_t AnswerIndex::bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return new_->bytes() + old_->bytes();
}

}  // namespace onpolicy
