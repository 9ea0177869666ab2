// Declarations that every kernel variant includes before it defines its `Lanes`.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/target.h"
#include "sampler/logit-values.h"
#include "sampler/kernels.h"

namespace onpolicy {

// The kernel tables. A build contains those of its architecture.
extern const Kernels kScalarKernels, kAvx2Kernels, kAvx512Kernels, kNeonKernels;

}  // namespace onpolicy

// The constants of 2^x. Each variant runs the same operations in the same order, so all of them give the same bits.
namespace onpolicy::power {

// 2^f = 1 + f (c1 + f (c2 + ...)) on [-0.5, 0.5], relative error below 1e-7 before rounding, about 2 ulp
// after.
inline constexpr float kC1 = 0x1.62e42ap-1f;
inline constexpr float kC2 = 0x1.ebf9bcp-3f;
inline constexpr float kC3 = 0x1.c6b752p-5f;
inline constexpr float kC4 = 0x1.3cea88p-7f;
inline constexpr float kC5 = 0x1.5bba14p-10f;

// Adding it leaves the nearest integer in the low bits of the sum.
inline constexpr float kRound = 12582912.0f;  // 1.5 * 2^23

// The lowest exponent that stays clear of subnormal numbers.
inline constexpr float kLowest = -125.0f;

// a * b + c with one rounding, on processors without that instruction: the product is exact in float64, and
// rounding the sum to odd first makes the second rounding correct.
inline float FusedInSoftware(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double sum = product + static_cast<double>(c);
  const double added = sum - product;
  const double lost = (product - (sum - added)) + (static_cast<double>(c) - added);
  const uint64_t bits = std::bit_cast<uint64_t>(sum);
  const uint64_t away = (std::bit_cast<uint64_t>(lost) ^ bits) >> 63;  // 1: the exact sum is nearer to 0
  const uint64_t even = ~bits & 1;
  const uint64_t step = lost != 0 ? even : 0;
  return static_cast<float>(std::bit_cast<double>(bits + step - 2 * (step & away)));
}

}  // namespace onpolicy::power

#if defined(_MSC_VER) && !defined(__clang__)
#define ONPOLICY_INLINE static __forceinline
#else
#define ONPOLICY_INLINE static inline __attribute__((always_inline))
#endif
