// The two float bounds of logits: the logit of a forbidden token, and the limit to which infinite logits are clamped.
#pragma once
#include <limits>

namespace onpolicy {

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
inline constexpr float kLargest = std::numeric_limits<float>::max();

}  // namespace onpolicy
