// The two bounds of logits, the logit of a forbidden token and the limit to which infinite logits are clamped; and their order.
#pragma once
#include <bit>
#include <cstdint>
#include <limits>

namespace onpolicy {

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
inline constexpr float kLargest = std::numeric_limits<float>::max();

// One integer of a value and its index, which sorts the best value first, and among equals the lowest index.
inline uint64_t SortKey(float value, uint32_t index) {
  const uint32_t bits = std::bit_cast<uint32_t>(value + 0.0f);  // + 0 makes -0 and 0 equal
  const uint32_t ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return uint64_t{~ascending} << 32 | index;
}

inline uint32_t IndexOfKey(uint64_t key) { return static_cast<uint32_t>(key); }

}  // namespace onpolicy
