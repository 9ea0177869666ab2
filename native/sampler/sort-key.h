// (value, index) -> one integer that sorts best value first, lowest index first among equals.
#pragma once
#include <bit>
#include <cstdint>

namespace onpolicy {

inline uint64_t SortKey(float value, uint32_t index) {
  const uint32_t bits = std::bit_cast<uint32_t>(value + 0.0f);  // + 0 makes -0 and 0 equal
  const uint32_t ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return uint64_t{~ascending} << 32 | index;
}

inline uint32_t IndexOfKey(uint64_t key) { return static_cast<uint32_t>(key); }

}  // namespace onpolicy
