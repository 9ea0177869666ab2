// The matcher's bookkeeping: a history of states and text lengths.
#include "mask/matcher.h"

#include <algorithm>
#include <cstring>

namespace onpolicy::grammar {

Matcher::Matcher(std::shared_ptr<Constraint> constraint) : constraint_(std::move(constraint)) {
  states_.push_back(constraint_->start());
  text_sizes_.push_back(0);
}

bool Matcher::FillMask(uint32_t* mask) noexcept {
  try {
    return constraint_->FillMask(states_.back(), text_, mask, &is_mask_cut_);
  } catch (...) {  // out of memory: nothing is allowed, and the caller ends the sequence
    std::memset(mask, 0, mask_words() * 4);
    text_.resize(text_sizes_.back());
    return false;
  }
}

bool Matcher::Accept(uint32_t token) noexcept {
  try {
    StateId next;
    if (!constraint_->Accept(states_.back(), token, text_, &next)) return false;
    states_.push_back(next);
    text_sizes_.push_back(static_cast<uint32_t>(text_.size()));
    return true;
  } catch (...) {
    states_.resize(std::min(states_.size(), text_sizes_.size()));
    text_.resize(text_sizes_.back());
    return false;
  }
}

bool Matcher::IsComplete() noexcept {
  try {
    return constraint_->IsComplete(states_.back());
  } catch (...) {
    return false;
  }
}

std::span<const uint32_t> Matcher::ForcedTokens() noexcept {
  try {
    forced_.clear();
    bool ends = false;
    const std::string forced = constraint_->ForcedBytes(states_.back(), text_, limits::kForcedBytes, &ends);
    if (forced.empty()) return {};
    const Vocabulary& vocabulary = constraint_->vocabulary();
    forced_ = vocabulary.Tokenize(forced);
    if (ends) return forced_;
    // A token near the end stays open when a longer one could have covered it and what comes after.
    size_t kept = 0;
    for (std::string_view rest = forced; kept < forced_.size() && !vocabulary.HasLonger(rest); kept++)
      rest.remove_prefix(vocabulary.Bytes(forced_[kept]).size());
    forced_.resize(kept);
    return forced_;
  } catch (...) {
    text_.resize(text_sizes_.back());
    return {};
  }
}

bool Matcher::Rollback(size_t count) noexcept {
  if (count > token_count()) return false;
  states_.resize(states_.size() - count);
  text_sizes_.resize(text_sizes_.size() - count);
  text_.resize(text_sizes_.back());
  return true;
}

std::unique_ptr<Matcher> Matcher::Clone() const { return std::make_unique<Matcher>(*this); }

}  // namespace onpolicy::grammar
