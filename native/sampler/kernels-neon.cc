// The kernels for NEON on 64-bit ARM: 16 lanes are four registers.
#include "sampler/kernels-common.h"

#if defined(__aarch64__) || defined(_M_ARM64)
#include <arm_neon.h>

namespace onpolicy {
namespace {

struct Lanes {
  float32x4_t quarter[4];
};
struct Truth {
  uint32x4_t quarter[4];
};

template <class Result, class Function>
ONPOLICY_INLINE Result Each(const Function& function) {
  return {{function(0), function(1), function(2), function(3)}};
}

ONPOLICY_INLINE Lanes Load(const float* from) {
  return Each<Lanes>([=](int i) { return vld1q_f32(from + 4 * i); });
}
ONPOLICY_INLINE void Store(float* to, Lanes v) {
  for (int i = 0; i < 4; ++i) vst1q_f32(to + 4 * i, v.quarter[i]);
}
ONPOLICY_INLINE Lanes Splat(float value) {
  return Each<Lanes>([=](int) { return vdupq_n_f32(value); });
}
ONPOLICY_INLINE Lanes Add(Lanes a, Lanes b) {
  return Each<Lanes>([&](int i) { return vaddq_f32(a.quarter[i], b.quarter[i]); });
}
ONPOLICY_INLINE Lanes Subtract(Lanes a, Lanes b) {
  return Each<Lanes>([&](int i) { return vsubq_f32(a.quarter[i], b.quarter[i]); });
}
ONPOLICY_INLINE Lanes Fused(Lanes a, Lanes b, Lanes c) {
  return Each<Lanes>([&](int i) { return vfmaq_f32(c.quarter[i], a.quarter[i], b.quarter[i]); });
}
ONPOLICY_INLINE Lanes Max(Lanes a, Lanes b) {
  return Each<Lanes>([&](int i) { return vmaxq_f32(a.quarter[i], b.quarter[i]); });
}
ONPOLICY_INLINE Truth AtLeast(Lanes a, Lanes b) {
  return Each<Truth>([&](int i) { return vcgeq_f32(a.quarter[i], b.quarter[i]); });
}
ONPOLICY_INLINE uint32x4_t IsNumber(float32x4_t v) { return vceqq_f32(v, v); }
ONPOLICY_INLINE Truth Unordered(Lanes a, Lanes b) {
  return Each<Truth>([&](int i) { return vmvnq_u32(vandq_u32(IsNumber(a.quarter[i]), IsNumber(b.quarter[i]))); });
}
ONPOLICY_INLINE Truth Never() {
  return Each<Truth>([](int) { return vdupq_n_u32(0); });
}
ONPOLICY_INLINE Truth Either(Truth a, Truth b) {
  return Each<Truth>([&](int i) { return vorrq_u32(a.quarter[i], b.quarter[i]); });
}
ONPOLICY_INLINE uint32x4_t EachBit() {
  const uint32_t each[4] = {1, 2, 4, 8};
  return vld1q_u32(each);
}
ONPOLICY_INLINE Truth FromBits(uint32_t bits) {
  return Each<Truth>([=](int i) { return vtstq_u32(vdupq_n_u32(bits >> (4 * i)), EachBit()); });
}
ONPOLICY_INLINE uint32_t Bits(Truth truth) {
  uint32_t bits = 0;
  for (int i = 0; i < 4; ++i) bits |= vaddvq_u32(vandq_u32(truth.quarter[i], EachBit())) << (4 * i);
  return bits;
}
ONPOLICY_INLINE Lanes Choose(Truth truth, Lanes yes, Lanes no) {
  return Each<Lanes>([&](int i) { return vbslq_f32(truth.quarter[i], yes.quarter[i], no.quarter[i]); });
}
ONPOLICY_INLINE Lanes ZeroUnless(Lanes v, Truth truth) {
  return Each<Lanes>([&](int i) {
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(v.quarter[i]), truth.quarter[i]));
  });
}
ONPOLICY_INLINE Lanes AddExponent(Lanes v, Lanes shifted) {
  return Each<Lanes>([&](int i) {
    const uint32x4_t exponent = vshlq_n_u32(vreinterpretq_u32_f32(shifted.quarter[i]), 23);
    return vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(v.quarter[i]), exponent));
  });
}
ONPOLICY_INLINE float ReduceMax(Lanes v) {
  return vmaxvq_f32(vmaxq_f32(vmaxq_f32(v.quarter[0], v.quarter[1]), vmaxq_f32(v.quarter[2], v.quarter[3])));
}
// Lane i first meets lane i + 8, then i + 4, i + 2, i + 1: the order of every variant.
ONPOLICY_INLINE float ReduceAdd(Lanes v) {
  const float32x4_t four =
      vaddq_f32(vaddq_f32(v.quarter[0], v.quarter[2]), vaddq_f32(v.quarter[1], v.quarter[3]));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
ONPOLICY_INLINE uint32_t LowestBit(uint32_t bits) { return static_cast<uint32_t>(std::countr_zero(bits)); }
ONPOLICY_INLINE uint32_t CountBits(uint32_t bits) { return static_cast<uint32_t>(std::popcount(bits)); }

#include "sampler/kernels-body.h"

}  // namespace

constinit const Kernels kNeonKernels = Table("neon");

}  // namespace onpolicy

#endif
