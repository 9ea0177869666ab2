// Settings of the sampler for a request, as plain data. Immutable, as every choice of the request shares one plan.
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
  // Samplers of llama.cpp. chain.h has their order.
  float typical_p = 1;        // 1 and above: off
  float xtc_probability = 0;  // 0: off
  float xtc_threshold = 0.1f;
  float dynatemp_range = 0;  // 0: off
  float dynatemp_exponent = 1;
  int32_t mirostat = 0;  // its version, 1 or 2; 0: off
  float mirostat_tau = 5;
  float mirostat_eta = 0.1f;
  float top_n_sigma = -1;      // 0 and below: off
  float adaptive_target = -1;  // adaptive-p; below 0: off
  float adaptive_decay = 0.9f;
  float dry_multiplier = 0;  // 0: off
  float dry_base = 1.75f;
  int32_t dry_allowed_length = 2;
  int32_t dry_penalty_last_n = -1;                        // tokens that DRY looks at; -1: all
  std::shared_ptr<const BadTexts> dry_breakers;   // null: none
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
  std::vector<int32_t> logprob_ids;  // if not empty and top_logprobs >= 0, the log-probabilities of these ids replace the k best
  int32_t candidates = 0;     // above 0: no token is drawn, the best tokens are returned instead
  bool processed_logprobs = false;  // after the whole pipeline, instead of the model's own
};

}  // namespace onpolicy
