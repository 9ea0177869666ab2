// Bias and penalties of a sequence -> the few tokens whose logit differs from the model's, and the differences.
#pragma once
#include <algorithm>
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

  explicit Adjustments(const SamplerPlan& plan)
      : repetition_(plan.repetition_penalty),
        frequency_(plan.frequency_penalty),
        presence_(plan.presence_penalty),
        counts_output_(plan.frequency_penalty != 0 || plan.presence_penalty != 0),
        vocab_size_(plan.vocab_size) {
    for (const auto& [id, bias] : plan.logit_bias) entries_.push_back({id, 0, bias, false});
    Combine();
  }

  void AcceptPrompt(const int32_t* ids, size_t count) {
    if (repetition_ == 1) return;
    for (size_t i = 0; i < count; ++i)
      if (ids[i] >= 0 && ids[i] < vocab_size_) entries_.push_back({ids[i], 0, 0, true});
    Combine();
  }

  void Accept(int32_t token) {
    if ((repetition_ == 1 && !counts_output_) || token < 0 || token >= vocab_size_) return;
    auto entry = std::lower_bound(entries_.begin(), entries_.end(), token,
                                  [](const Entry& e, int32_t id) { return e.id < id; });
    if (entry == entries_.end() || entry->id != token) entry = entries_.insert(entry, {token, 0, 0, false});
    entry->seen = repetition_ != 1;
    if (counts_output_) ++entry->count;
  }

  // Sorted by id, so that a loop over them reads a row of logits from front to back.
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
  void Combine() {
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const Entry& a, const Entry& b) { return a.id < b.id; });
    size_t kept = 0;
    for (const Entry& entry : entries_) {
      if (kept > 0 && entries_[kept - 1].id == entry.id) {
        Entry& same = entries_[kept - 1];
        same.count += entry.count;
        same.bias += entry.bias;
        same.seen = same.seen || entry.seen;
      } else {
        entries_[kept++] = entry;
      }
    }
    entries_.resize(kept, Entry{});
  }

  float repetition_, frequency_, presence_;
  bool counts_output_;
  int32_t vocab_size_;
  std::vector<Entry> entries_;
};

}  // namespace onpolicy
