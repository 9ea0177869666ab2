// The matcher's history of states and text lengths.
#include "grammar/mask/matcher.h"

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
    text_.Shorten(text_sizes_.back());
    return false;
  }
}

bool Matcher::Accept(uint32_t token) noexcept {
  try {
    StateId next;
    if (!constraint_->Accept(states_.back(), token, text_, &next)) return false;
    tokens_.push_back(token);
    states_.push_back(next);
    text_sizes_.push_back(static_cast<uint32_t>(text_.size()));
    return true;
  } catch (...) {
    tokens_.resize(text_sizes_.size() - 1);
    states_.resize(text_sizes_.size());
    text_.Shorten(text_sizes_.back());
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
    TextSplitter* const splitter = constraint_->vocabulary().splitter();
    if (!splitter) return {};
    bool ends = false;
    const std::string forced = constraint_->ForcedBytes(states_.back(), text_, limits::kForcedBytes, &ends);
    if (!forced.empty()) forced_ = splitter->SplitForced(tokens_, forced, ends);
    return forced_;
  } catch (...) {  // out of memory: nothing is forced
    text_.Shorten(text_sizes_.back());
    forced_.clear();
    return {};
  }
}

bool Matcher::Rollback(size_t count) noexcept {
  if (count > token_count()) return false;
  tokens_.resize(tokens_.size() - count);
  states_.resize(states_.size() - count);
  text_sizes_.resize(text_sizes_.size() - count);
  text_.Shorten(text_sizes_.back());
  return true;
}

std::unique_ptr<Matcher> Matcher::Clone() const { return std::make_unique<Matcher>(*this); }

}  // namespace onpolicy::grammar
