// A model, a LoRA file and tokens -> log-probabilities as the inference engine computes them, to compare a trainer with.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace onpolicy::training {

// Fills `logprobs`, (tokens - 1): of each token but the first, given those before it. `adapter` may be empty.
Status ScoreWithEngine(const std::string& model, const std::string& adapter, int threads, std::vector<int32_t> tokens,
                       std::vector<float>* logprobs);

}  // namespace onpolicy::training
