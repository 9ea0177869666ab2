// The tokens of a sequence -> penalties of those that would continue a repetition. "DRY", as in
// https://github.com/oobabooga/text-generation-webui/pull/5677: where the last n tokens stood before, the token that came then is
// penalised by multiplier * base^(n - allowed length), if n is at least the allowed length.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sampler/sampler-plan.h"
#include "sampler/sampler-scratch.h"

namespace onpolicy {

class Dry {
 public:
  explicit Dry(std::shared_ptr<const SamplerPlan> plan) : plan_(std::move(plan)) {}

  // A token of the prompt or the output.
  void Accept(int32_t token);

  // Fills scratch.penalties, in order of id.
  void FindPenalties(SamplerScratch& scratch) const;

 private:
  float PenaltyOf(size_t length) const;

  std::shared_ptr<const SamplerPlan> plan_;
  std::vector<int32_t> tokens_;
  uint32_t breaker_state_ = 0;
  size_t since_breaker_ = 0;  // tokens after the last one in which a sequence breaker ended
};

}  // namespace onpolicy
