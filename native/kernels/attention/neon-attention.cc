// Kernels for ARM: the lanes of a sum are four registers.
#include "kernels/attention/kernels.h"

#ifdef ONPOLICY_ARM_ATTENTION
#include <arm_neon.h>

#include <initializer_list>

#pragma GCC push_options
#pragma GCC optimize("no-schedule-insns")  // GCC 12 would move so many loads ahead that sums leave the registers

namespace onpolicy::attention {
namespace {

constexpr int kTileSums = 4, kTileRows = 2, kValueRows = 6, kValueVectors = 1, kDeltaRows = 1, kManyRows = 6, kManyVectors = 1;
constexpr int kScoreRows = 2, kScoreVectors = 1;

#include "kernels/lanes/neon.h"

inline Lanes WidenHalves(const uint8_t* from) {
  const float16x8_t low = vreinterpretq_f16_u8(vld1q_u8(from)), high = vreinterpretq_f16_u8(vld1q_u8(from + 16));
  return {{vcvt_f32_f16(vget_low_f16(low)), vcvt_high_f32_f16(low), vcvt_f32_f16(vget_low_f16(high)), vcvt_high_f32_f16(high)}};
}
inline float WidenHalf(const uint8_t* from) {
  __fp16 half;
  __builtin_memcpy(&half, from, 2);
  return half;
}
inline Lanes WidenSigned(const uint8_t* from) {
  const int8x16_t bytes = vreinterpretq_s8_u8(vld1q_u8(from));
  const int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_high_s8(bytes);
  return {{vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_high_s16(low)),
           vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_high_s16(high))}};
}

// Returns the pairwise sums of two vectors.
inline float32x4_t Twos(Lanes a, Lanes b) {
  const float64x2_t x = vreinterpretq_f64_f32(SumsOfFour(a)), y = vreinterpretq_f64_f32(SumsOfFour(b));
  return vaddq_f32(vreinterpretq_f32_f64(vzip1q_f64(x, y)), vreinterpretq_f32_f64(vzip2q_f64(x, y)));
}

// Adds lanes 8, then 4, 2 and 1 apart.
inline void SumAll(const Lanes* sums, float* to) { vst1q_f32(to, vpaddq_f32(Twos(sums[0], sums[1]), Twos(sums[2], sums[3]))); }

// Transposes kLanes vectors by squares of four: number j of vector i becomes number i of vector j.
inline void Transpose(Lanes* square) {
  Lanes from[16];
  for (int i = 0; i < 16; ++i) from[i] = square[i];
  for (int row = 0; row < 4; ++row)
    for (int column = 0; column < 4; ++column) {
      const auto at = [&](int i) { return from[4 * row + i].quarter[column]; };
      const float64x2_t even = vreinterpretq_f64_f32(vtrn1q_f32(at(0), at(1))), even_after = vreinterpretq_f64_f32(vtrn1q_f32(at(2), at(3)));
      const float64x2_t odd = vreinterpretq_f64_f32(vtrn2q_f32(at(0), at(1))), odd_after = vreinterpretq_f64_f32(vtrn2q_f32(at(2), at(3)));
      Lanes* to = square + 4 * column;
      to[0].quarter[row] = vreinterpretq_f32_f64(vzip1q_f64(even, even_after));
      to[1].quarter[row] = vreinterpretq_f32_f64(vzip1q_f64(odd, odd_after));
      to[2].quarter[row] = vreinterpretq_f32_f64(vzip2q_f64(even, even_after));
      to[3].quarter[row] = vreinterpretq_f32_f64(vzip2q_f64(odd, odd_after));
    }
}

#include "kernels/attention/kernel-body.h"
#include "kernels/attention/many-rows-body.h"
#include "kernels/attention/recurrent-body.h"

uint64_t Visible(const uint16_t* mask) {
  const uint16x8_t unseen = vdupq_n_u16(0xFC00);
  const uint8x16_t bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
  const auto seen = [&](int i) {
    const uint16x8_t low = vceqq_u16(vld1q_u16(mask + i), unseen), high = vceqq_u16(vld1q_u16(mask + i + 8), unseen);
    return vbicq_u8(bits, vmovn_high_u16(vmovn_u16(low), high));
  };
  const uint8x16_t pairs = vpaddq_u8(vpaddq_u8(seen(0), seen(16)), vpaddq_u8(seen(32), seen(48)));
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(pairs, pairs)), 0);
}

bool IsSupported() { return true; }

}  // namespace

constinit const Kernels kNeonKernels = {
    "neon", IsSupported, Visible, Sum, {Attend<CellType::kF16>, Attend<CellType::kQ8_0>, Attend<CellType::kF32>}, Narrow, Widen,
    Delta, Convolve, AddWeighted};

}  // namespace onpolicy::attention

#pragma GCC pop_options

#endif
