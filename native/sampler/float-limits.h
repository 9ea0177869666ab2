// The two float bounds of logits: what a forbidden token gets, and what an infinite logit is clamped to.
#pragma once
#include <limits>

namespace onpolicy {

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
inline constexpr float kLargest = std::numeric_limits<float>::max();

}  // namespace onpolicy
