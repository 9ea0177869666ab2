// One row of logits and its target -> (softmax - onehot) in place, and the entropy.
#pragma once
#include <cstdint>

namespace onpolicy::training {

// `largest`: the largest logit.
float SoftMaxRow(float* logits, int64_t count, int32_t target, float largest);

}  // namespace onpolicy::training
