// 16 lanes of NEON on 64-bit ARM: four registers. ../README.md explains the operations.
struct Lanes {
  float32x4_t quarter[4];
};
struct Truth {
  uint32x4_t quarter[4];
};

template <class Result = Lanes, class Function>
inline Result Each(const Function& function) {
  return {{function(0), function(1), function(2), function(3)}};
}

inline Lanes Load(const float* from) { return Each([&](int i) { return vld1q_f32(from + 4 * i); }); }
inline void Store(float* to, Lanes v) {
  for (int i = 0; i < 4; ++i) vst1q_f32(to + 4 * i, v.quarter[i]);
}
inline Lanes Splat(float value) { return Each([&](int) { return vdupq_n_f32(value); }); }
inline Lanes Add(Lanes a, Lanes b) { return Each([&](int i) { return vaddq_f32(a.quarter[i], b.quarter[i]); }); }
inline Lanes Subtract(Lanes a, Lanes b) { return Each([&](int i) { return vsubq_f32(a.quarter[i], b.quarter[i]); }); }
inline Lanes Multiply(Lanes a, Lanes b) { return Each([&](int i) { return vmulq_f32(a.quarter[i], b.quarter[i]); }); }
inline Lanes Divide(Lanes a, Lanes b) { return Each([&](int i) { return vdivq_f32(a.quarter[i], b.quarter[i]); }); }
inline Lanes Fused(Lanes a, Lanes b, Lanes c) {
  return Each([&](int i) { return vfmaq_f32(c.quarter[i], a.quarter[i], b.quarter[i]); });
}
inline Lanes Max(Lanes a, Lanes b) { return Each([&](int i) { return vmaxq_f32(a.quarter[i], b.quarter[i]); }); }
inline Lanes Rounded(Lanes v) { return Each([&](int i) { return vrndnq_f32(v.quarter[i]); }); }
inline Truth AtLeast(Lanes a, Lanes b) { return Each<Truth>([&](int i) { return vcgeq_f32(a.quarter[i], b.quarter[i]); }); }
inline uint32x4_t IsNumber(float32x4_t v) { return vceqq_f32(v, v); }
inline Truth Unordered(Lanes a, Lanes b) {
  return Each<Truth>([&](int i) { return vmvnq_u32(vandq_u32(IsNumber(a.quarter[i]), IsNumber(b.quarter[i]))); });
}
inline Truth Never() { return Each<Truth>([](int) { return vdupq_n_u32(0); }); }
inline Truth Either(Truth a, Truth b) { return Each<Truth>([&](int i) { return vorrq_u32(a.quarter[i], b.quarter[i]); }); }
inline uint32x4_t EachBit() {
  const uint32_t each[4] = {1, 2, 4, 8};
  return vld1q_u32(each);
}
inline Truth FromBits(uint32_t bits) {
  return Each<Truth>([&](int i) { return vtstq_u32(vdupq_n_u32(bits >> (4 * i)), EachBit()); });
}
inline uint32_t Bits(Truth truth) {
  uint32_t bits = 0;
  for (int i = 0; i < 4; ++i) bits |= vaddvq_u32(vandq_u32(truth.quarter[i], EachBit())) << (4 * i);
  return bits;
}
inline Lanes Choose(Truth truth, Lanes yes, Lanes no) {
  return Each([&](int i) { return vbslq_f32(truth.quarter[i], yes.quarter[i], no.quarter[i]); });
}
inline Lanes ZeroUnless(Lanes v, Truth truth) {
  return Each([&](int i) { return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(v.quarter[i]), truth.quarter[i])); });
}
inline Lanes AddExponent(Lanes v, Lanes shifted) {
  return Each([&](int i) {
    const uint32x4_t exponent = vshlq_n_u32(vreinterpretq_u32_f32(shifted.quarter[i]), 23);
    return vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(v.quarter[i]), exponent));
  });
}
inline Lanes PowerOfTwo(Lanes whole) {
  return Each([&](int i) {
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(whole.quarter[i]), vdupq_n_s32(127)), 23));
  });
}
inline float ReduceMax(Lanes v) {
  return vmaxvq_f32(vmaxq_f32(vmaxq_f32(v.quarter[0], v.quarter[1]), vmaxq_f32(v.quarter[2], v.quarter[3])));
}
// Returns sums of the lanes 8, then 4 apart.
inline float32x4_t SumsOfFour(Lanes v) {
  return vaddq_f32(vaddq_f32(v.quarter[0], v.quarter[2]), vaddq_f32(v.quarter[1], v.quarter[3]));
}
inline float ReduceAdd(Lanes v) {
  const float32x4_t four = SumsOfFour(v);
  return vpadds_f32(vadd_f32(vget_low_f32(four), vget_high_f32(four)));
}
