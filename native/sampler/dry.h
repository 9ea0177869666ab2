// The tokens of a sequence -> penalties of those that would continue a repetition. "DRY", as in
// https://github.com/oobabooga/text-generation-webui/pull/5677: if the last n tokens occurred before, the token that followed them is
// penalised by multiplier * base^(n - allowed length), if n is at least the allowed length.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sampler/logit-values.h"
#include "sampler/sampler-plan.h"
#include "sampler/sampler-scratch.h"

namespace onpolicy {

class Dry {
 public:
  explicit Dry(std::shared_ptr<const SamplerPlan> plan) : plan_(std::move(plan)) {}

  // Adds a token of the prompt or the output.
  void Accept(int32_t token) {
    const BadTexts* breakers = plan_->dry_breakers.get();
    tokens_.push_back(token);
    ++since_breaker_;
    if (breakers && breakers->EndsIn(token, &breaker_state_)) since_breaker_ = 0;
  }

  // Fills scratch.penalties, in order of id.
  void FindPenalties(SamplerScratch& scratch) const {
    std::vector<AdjustedToken>& penalties = scratch.penalties;
    penalties.clear();
    const auto allowed = static_cast<size_t>(plan_->dry_allowed_length);
    const size_t count = plan_->dry_penalty_last_n < 0 ? tokens_.size() : std::min(tokens_.size(), static_cast<size_t>(plan_->dry_penalty_last_n));
    const size_t most = std::min(since_breaker_, count);
    if (count <= allowed || most < allowed) return;

    // lengths[k]: how many of the last tokens also end at the position k places before the last. The Z algorithm: inside the
    // match that reaches furthest, [left, right), the lengths of its beginning apply again.
    const auto back = [&](size_t place) { return tokens_[tokens_.size() - 1 - place]; };
    std::vector<size_t>& lengths = scratch.lengths;
    lengths.assign(count, 0);
    size_t left = 0, right = 0;
    for (size_t k = 1; k < count; ++k) {
      size_t length = k < right ? std::min(right - k, lengths[k - left]) : 0;
      while (k + length < count && back(length) == back(k + length)) ++length;
      lengths[k] = length;
      if (k + length > right) {
        left = k;
        right = k + length;
      }
      length = std::min(length, most);
      if (length >= allowed) penalties.push_back({back(k - 1), static_cast<float>(length)});
    }

    // The longest repetition counts.
    std::sort(penalties.begin(), penalties.end(), [](const AdjustedToken& a, const AdjustedToken& b) {
      return a.id != b.id ? a.id < b.id : a.value > b.value;
    });
    const auto is_same = [](const AdjustedToken& a, const AdjustedToken& b) { return a.id == b.id; };
    penalties.erase(std::unique(penalties.begin(), penalties.end(), is_same), penalties.end());
    std::erase_if(penalties, [&](const AdjustedToken& token) { return token.id < 0 || token.id >= plan_->vocab_size; });
    for (AdjustedToken& token : penalties) token.value = PenaltyOf(static_cast<size_t>(token.value));
  }

 private:
  float PenaltyOf(size_t length) const {
    const double power = std::pow(static_cast<double>(plan_->dry_base), static_cast<double>(length) - plan_->dry_allowed_length);
    return static_cast<float>(std::min(static_cast<double>(plan_->dry_multiplier) * power, static_cast<double>(kLargest)));
  }

  std::shared_ptr<const SamplerPlan> plan_;
  std::vector<int32_t> tokens_;
  uint32_t breaker_state_ = 0;
  size_t since_breaker_ = 0;  // tokens after the last one in which a sequence breaker ended
};

}  // namespace onpolicy
