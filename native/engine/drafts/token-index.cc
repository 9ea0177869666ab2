// Tokens, appended one by one -> places at which the last tokens of a text occur.
#include "engine/drafts/token-index.h"

#include <algorithm>

namespace onpolicy {
namespace {

// Number of places in one bucket that a search visits, and maximum of tokens compared at each.
constexpr int kMostPlaces = 32;
constexpr size_t kLongestMatch = 32;
constexpr size_t kFirstBuckets = 256;

size_t Distance(size_t a, size_t b) { return a > b ? a - b : b - a; }

}  // namespace

int64_t TokenIndex::Bucket(const int32_t* end) const {
  uint64_t hash = 0;
  for (size_t i = 1; i <= min_match_; ++i) {
    if (end[-static_cast<std::ptrdiff_t>(i)] == kNoToken) return -1;
    hash = (hash + static_cast<uint32_t>(end[-static_cast<std::ptrdiff_t>(i)])) * 0x9E3779B97F4A7C15u;
  }
  return static_cast<int64_t>((hash >> 32) & (last_.size() - 1));
}

void TokenIndex::Enter() {
  const size_t place = before_.size() + 1;
  const int64_t bucket = place < min_match_ ? -1 : Bucket(tokens_.data() + place);
  before_.push_back(bucket < 0 ? 0 : last_[static_cast<size_t>(bucket)]);
  if (bucket >= 0) last_[static_cast<size_t>(bucket)] = static_cast<int32_t>(place);
}

void TokenIndex::Append(int32_t token, uint64_t state) {
  if (state != kNoState) in_state_[state] = static_cast<int32_t>(tokens_.size());
  tokens_.push_back(token);
  if (tokens_.size() <= last_.size()) return Enter();
  last_.assign(std::max(kFirstBuckets, 2 * last_.size()), 0);
  before_.clear();
  while (before_.size() < tokens_.size()) Enter();
}

TokenIndex::Match TokenIndex::FindState(uint64_t state) const {
  const auto found = state == kNoState ? in_state_.end() : in_state_.find(state);
  if (found == in_state_.end()) return {};
  return {1, static_cast<size_t>(found->second)};
}

size_t TokenIndex::bytes() const {
  return (tokens_.capacity() + before_.capacity() + last_.capacity()) * sizeof(int32_t) + in_state_.size() * kBytesPerState;
}

TokenIndex::Match TokenIndex::Find(const int32_t* text, size_t count, size_t near) const {
  Match best;
  if (count < min_match_ || tokens_.size() <= min_match_) return best;
  const int64_t bucket = Bucket(text + count);
  if (bucket < 0) return best;
  size_t place = static_cast<size_t>(last_[static_cast<size_t>(bucket)]);
  for (int looked = 0; place > 0 && looked < kMostPlaces; ++looked, place = static_cast<size_t>(before_[place - 1])) {
    if (place == tokens_.size()) continue;
    const size_t most = std::min({kLongestMatch, place, count});
    size_t length = 0;
    while (length < most && tokens_[place - 1 - length] == text[count - 1 - length] && text[count - 1 - length] != kNoToken)
      ++length;
    if (length < min_match_ || length < best.length) continue;
    if (length == best.length && Distance(place, near) >= Distance(best.next, near)) continue;
    best = {length, place};
    if (length == kLongestMatch && place < near) break;  // later places are farther away
  }
  return best;
}

}  // namespace onpolicy
