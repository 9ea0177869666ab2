// The coefficients of 2^x that every kernel variant shares, and the scalar form. Each variant runs the same operations
// in the same order, without fused multiply-add, so all of them give the same bits.
#pragma once
#include <cstdint>
#include <cstring>

namespace onpolicy::power {

// 2^f = 1 + f (c1 + f (c2 + ...)) on [-0.5, 0.5], relative error below 1e-7 before rounding, about 2 ulp after.
inline constexpr float kC1 = 0x1.62e42ap-1f;
inline constexpr float kC2 = 0x1.ebf9bcp-3f;
inline constexpr float kC3 = 0x1.c6b752p-5f;
inline constexpr float kC4 = 0x1.3cea88p-7f;
inline constexpr float kC5 = 0x1.5bba14p-10f;

// Adding it leaves the nearest integer in the low bits of the sum.
inline constexpr float kRound = 12582912.0f;  // 1.5 * 2^23

// Below, the result is 0: 2^-126 is the smallest normal number.
inline constexpr float kLowest = -126.0f;

// 2^x for x <= 0; 0 for NaN, for -infinity and below 2^-126.
inline float Of(float x) {
  if (!(x >= kLowest)) return 0;
  const float shifted = x + kRound;
  const float f = x - (shifted - kRound);
  float p = kC5 * f;
  p = (p + kC4) * f;
  p = (p + kC3) * f;
  p = (p + kC2) * f;
  p = (p + kC1) * f;
  p = p + 1.0f;
  uint32_t bits, exponent;
  std::memcpy(&bits, &p, sizeof bits);
  std::memcpy(&exponent, &shifted, sizeof exponent);
  bits += exponent << 23;
  std::memcpy(&p, &bits, sizeof p);
  return p;
}

}  // namespace onpolicy::power
