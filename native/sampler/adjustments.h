// Bias and penalties of a sequence: the few tokens whose logit differs from the model's, and by how much.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sampler/sampler-plan.h"

namespace onpolicy {

class Adjustments {
 public:
  struct Entry {
    int32_t id;
    int32_t count;  // in the output
    float bias;
    bool seen;  // in prompt or output, as far as the repetition penalty is on
  };

  explicit Adjustments(const SamplerPlan& plan);

  void AcceptPrompt(int32_t token);
  void Accept(int32_t token);

  // In the order of first occurrence.
  const std::vector<Entry>& entries() const { return entries_; }

  // A logit that already has its bias -> the logit after repetition, frequency and presence penalty.
  float Penalise(const Entry& entry, float logit) const {
    if (entry.seen) logit = logit > 0 ? logit / repetition_ : logit * repetition_;
    if (entry.count > 0) {
      logit -= frequency_ * static_cast<float>(entry.count);
      logit -= presence_;
    }
    return logit;
  }

 private:
  Entry& EntryOf(int32_t id);

  float repetition_, frequency_, presence_;
  bool counts_output_;
  std::vector<Entry> entries_;
  std::unordered_map<int32_t, uint32_t> places_;  // id -> index in entries_
};

}  // namespace onpolicy
