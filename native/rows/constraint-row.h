// A grammar's matcher beside one sampled row: its mask is computed while the engine computes the logits.
#pragma once
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "mask/matcher.h"
#include "sampler/sampler.h"

namespace onpolicy {

class ConstraintRows {
 public:
  // One matcher per sample; null: the sample is free. Masks are computed on another thread until Wait returns.
  explicit ConstraintRows(const std::vector<std::shared_ptr<grammar::Matcher>>& matchers)
      : matchers_(matchers), masks_(matchers.size()) {
    bool any = false;
    for (const auto& matcher : matchers_) any = any || matcher;
    if (any) thread_ = std::thread([this] { Fill(); });
  }
  ~ConstraintRows() { Wait(); }

  void Wait() {
    if (thread_.joinable()) thread_.join();
  }

  // The row's mask, or null when every token is allowed.
  const uint32_t* Mask(size_t sample) const {
    return sample < masks_.size() && !masks_[sample].empty() ? masks_[sample].data() : nullptr;
  }

  // Takes a sampled token. Returns whether nothing but the end may follow.
  bool Accept(size_t sample, int32_t token) {
    return sample < matchers_.size() && matchers_[sample] && AcceptToken(*matchers_[sample], token);
  }

  // Takes the tokens that must follow the sampled one whatever the model says. Returns whether nothing but the end may
  // follow them.
  bool TakeForced(size_t sample, Sampler& sampler, std::vector<int32_t>* forced) {
    if (sample >= matchers_.size() || !matchers_[sample] || !sampler.MayTakeForced()) return false;
    bool is_final = false;
    for (uint32_t token : matchers_[sample]->ForcedTokens()) {
      forced->push_back(static_cast<int32_t>(token));
      sampler.Accept(forced->back());
      is_final = AcceptToken(*matchers_[sample], forced->back());
    }
    return is_final;
  }

  static bool AcceptToken(grammar::Matcher& matcher, int32_t token) {
    matcher.Accept(static_cast<uint32_t>(token));
    return matcher.IsFinal();
  }

  bool IsComplete(size_t sample) const {
    return sample < matchers_.size() && matchers_[sample] && matchers_[sample]->IsComplete();
  }

 private:
  void Fill() {
    for (size_t i = 0; i < matchers_.size(); ++i) {
      if (!matchers_[i] || matchers_[i]->IsEnded()) continue;
      masks_[i].resize(matchers_[i]->mask_words());
      if (matchers_[i]->FillMask(masks_[i].data())) masks_[i].clear();
    }
  }

  const std::vector<std::shared_ptr<grammar::Matcher>>& matchers_;
  std::vector<std::vector<uint32_t>> masks_;  // (samples) empty: every token is allowed
  std::thread thread_;
};

}  // namespace onpolicy
