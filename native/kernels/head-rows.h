// One row of logits and its target -> (softmax - onehot) in place, the target's log-probability and the entropy.
#pragma once
#include <cstdint>

namespace onpolicy::training {

struct HeadRow {
  float logprob;
  float entropy;
};

HeadRow SoftMaxRow(float* logits, int64_t count, int32_t target);

}  // namespace onpolicy::training
