// Finished answers -> drafts for texts that continue like one of them. Bounded: old answers give way to new ones.
#include "drafts/answer-index.h"

#include <algorithm>

namespace onpolicy {
namespace {

// A token, its link and up to two buckets for it, where vectors may have twice the capacity that they need.
constexpr size_t kBytesPerToken = 6 * sizeof(int32_t);

}  // namespace

AnswerIndex::AnswerIndex(size_t min_match, size_t max_bytes)
    : min_match_(min_match),
      max_tokens_(max_bytes / (2 * kBytesPerToken)),
      new_(std::make_unique<TokenIndex>(min_match)),
      old_(std::make_unique<TokenIndex>(min_match)) {}

void AnswerIndex::Add(const int32_t* tokens, size_t count) {
  std::lock_guard<std::mutex> lock(mutex_);
  count = std::min(count, max_tokens_ > 0 ? max_tokens_ - 1 : 0);
  if (count == 0) return;
  if (new_->tokens().size() + count + 1 > max_tokens_) {
    old_ = std::move(new_);
    new_ = std::make_unique<TokenIndex>(min_match_);
  }
  for (size_t i = 0; i < count; ++i) new_->Append(tokens[i]);
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
  for (size_t at = match.next; draft->size() < limit && best->tokens()[at] != kNoToken; ++at)
    draft->push_back(best->tokens()[at]);
  return match.length;
}

size_t AnswerIndex::bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return new_->bytes() + old_->bytes();
}

}  // namespace onpolicy
