// What a request asks of the sampler, as plain data. Immutable: every choice of the request shares one plan.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sampler/bad-texts.h"

namespace onpolicy {

struct SamplerPlan {
  int32_t vocab_size = 0;
  float temperature = 1;  // 0: greedy
  float top_p = 1;        // 1 and above: off
  float min_p = 0;        // 0: off
  int32_t top_k = 0;      // 0 and below: off
  float repetition_penalty = 1;
  float frequency_penalty = 0;
  float presence_penalty = 0;
  std::vector<std::pair<int32_t, float>> logit_bias;
  std::vector<uint32_t> allowed;                // (vocab / 32, rounded up) bit = allowed; empty: all
  std::shared_ptr<const BadTexts> bad_texts;    // null: none
  int32_t min_tokens = 0;
  std::vector<int32_t> stop_ids;  // masked while fewer than min_tokens were generated
  std::vector<int32_t> end_ids;   // masked while the end is held
  int32_t top_logprobs = -1;  // -1: no log-probabilities; 0: the chosen token's; k: also those of the k best
  int32_t candidates = 0;     // above 0: no token is drawn, the best tokens are returned instead
  bool processed_logprobs = false;  // after the whole pipeline, instead of the model's own
};

}  // namespace onpolicy
