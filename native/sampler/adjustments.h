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
    const float repetition = entry.seen ? repetition_ : 1;
    const float divided = logit / repetition, multiplied = logit * repetition;
    const float repeated = logit > 0 ? divided : multiplied;
    return (repeated - frequency_ * static_cast<float>(entry.count)) - (entry.count > 0 ? presence_ : 0);
  }

 private:
  Entry& EntryOf(int32_t id);

  float repetition_, frequency_, presence_;
  bool counts_output_;
  std::vector<Entry> entries_;
  std::unordered_map<int32_t, uint32_t> places_;  // id -> index in entries_
};

}  // namespace onpolicy
