// Bias and penalties of a sequence: the few tokens whose logit differs from the model's, and by how much.
#include "sampler/adjustments.h"

namespace onpolicy {

Adjustments::Adjustments(const SamplerPlan& plan)
    : repetition_(plan.repetition_penalty),
      frequency_(plan.frequency_penalty),
      presence_(plan.presence_penalty),
      counts_output_(plan.frequency_penalty != 0 || plan.presence_penalty != 0) {
  for (const auto& [id, bias] : plan.logit_bias) EntryOf(id).bias += bias;
}

Adjustments::Entry& Adjustments::EntryOf(int32_t id) {
  const auto [place, is_new] = places_.try_emplace(id, static_cast<uint32_t>(entries_.size()));
  if (is_new) entries_.push_back({id, 0, 0, false});
  return entries_[place->second];
}

void Adjustments::AcceptPrompt(int32_t token) {
  if (repetition_ != 1) EntryOf(token).seen = true;
}

void Adjustments::Accept(int32_t token) {
  if (repetition_ == 1 && !counts_output_) return;
  Entry& entry = EntryOf(token);
  entry.seen = repetition_ != 1;
  if (counts_output_) ++entry.count;
}

}  // namespace onpolicy
