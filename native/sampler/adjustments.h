// Bias and penalties of a sequence: the few tokens whose logit differs from the model's, and by how much.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sampler/sampler-plan.h"

namespace onpolicy {

class Adjustments {
 public:
  struct Entry {
    int32_t id;
    int32_t count;  // in the output
    float bias;
    bool seen;  // in prompt or output; false while the repetition penalty is off
  };

  explicit Adjustments(const SamplerPlan& plan);

  void AcceptPrompt(const int32_t* ids, size_t count);
  void Accept(int32_t token);

  // In order of id: a loop over them reads a row of logits from front to back.
  const std::vector<Entry>& entries() const { return entries_; }

  // A logit that already has its bias -> the logit after repetition, frequency and presence penalty.
  float Penalise(const Entry& entry, float logit) const {
    const float repetition = entry.seen ? repetition_ : 1;
    const float divided = logit / repetition, multiplied = logit * repetition;
    const float repeated = logit > 0 ? divided : multiplied;
    return (repeated - frequency_ * static_cast<float>(entry.count)) - (entry.count > 0 ? presence_ : 0);
  }

 private:
  // Sorts the entries by id and merges entries of the same id.
  void Combine();

  float repetition_, frequency_, presence_;
  bool counts_output_;
  int32_t vocab_size_;
  std::vector<Entry> entries_;
};

}  // namespace onpolicy
