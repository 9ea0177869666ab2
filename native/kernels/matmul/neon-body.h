// Included by sets for ARM inside their namespace. Half of a panel's rows are two registers of each step. The set has defined kTileTokens
// and TileVectors, which kernel-body.h explains, and kPairsSteps, which is true if a token's values of two steps are adjacent.

constexpr bool kSubtractsWide = true;  // weights of 8 bits are signed
constexpr int kLanes = 8;

template <typename Register>
struct Two {
  Register v[2];
};
using Bytes = Two<uint8x16_t>;
using Ints = Two<int32x4_t>;
using Floats = Two<float32x4_t>;

Bytes LoadBytes(const uint8_t* from) { return {{vld1q_u8(from), vld1q_u8(from + 16)}}; }
template <int kMask>
Bytes LowBits(Bytes v) { return {{vandq_u8(v.v[0], vdupq_n_u8(kMask)), vandq_u8(v.v[1], vdupq_n_u8(kMask))}}; }
template <int kBits>
Bytes Shifted(Bytes v) {
  if constexpr (kBits == 0) return v;
  else return {{vshrq_n_u8(v.v[0], kBits), vshrq_n_u8(v.v[1], kBits)}};
}
template <int kBits>
Bytes ShiftedLeft(Bytes v) { return {{vshlq_n_u8(v.v[0], kBits), vshlq_n_u8(v.v[1], kBits)}}; }
Bytes HighHalves(Bytes v) { return Shifted<4>(v); }
Bytes Joined(Bytes a, Bytes b) { return {{vorrq_u8(a.v[0], b.v[0]), vorrq_u8(a.v[1], b.v[1])}}; }
Bytes LookedUp(Bytes v, const uint8_t* numbers) {
  const uint8x16_t table = vld1q_u8(numbers);
  return {{vqtbl1q_u8(table, v.v[0]), vqtbl1q_u8(table, v.v[1])}};
}
Ints SetInts(int32_t value) { return {{vdupq_n_s32(value), vdupq_n_s32(value)}}; }

// One of four adjacent values, which instructions select from their register.
template <typename Register, int kLane>
struct Lane {
  Register four;
};
constexpr int PlaceOf(int step, int token, int tokens) {
  return kPairsSteps ? (step / 2 * tokens + token) * 2 + step % 2 : step * tokens + token;
}
template <int kStep, int kToken, int kTokens>
auto StepOf(const int32_t* group) {
  constexpr int kPlace = PlaceOf(kStep, kToken, kTokens);
  return Lane<int32x4_t, kPlace % 4>{vld1q_s32(group + kPlace / 4 * 4)};
}
template <int kPlace>
Lane<float32x4_t, kPlace % 4> ValueAt(const float* column) { return {vld1q_f32(column + kPlace / 4 * 4)}; }

template <int, int, int kLane>
void Dot(Ints& dots, Ints&, Bytes weights, Lane<int32x4_t, kLane> x) {
  for (int i = 0; i < 2; ++i) {
    asm("sdot %0.4s, %1.16b, %2.4b[%3]" : "+w"(dots.v[i]) : "w"(weights.v[i]), "w"(x.four), "i"(kLane));
  }
}

Floats ToFloats(Ints v) { return {{vcvtq_f32_s32(v.v[0]), vcvtq_f32_s32(v.v[1])}}; }
Floats SetFloats(float value) { return {{vdupq_n_f32(value), vdupq_n_f32(value)}}; }
Floats LoadFloats(const float* from) { return {{vld1q_f32(from), vld1q_f32(from + 4)}}; }
void StoreFloats(Floats v, float* to) {
  vst1q_f32(to, v.v[0]);
  vst1q_f32(to + 4, v.v[1]);
}
Floats Multiply(Floats a, Floats b) { return {{vmulq_f32(a.v[0], b.v[0]), vmulq_f32(a.v[1], b.v[1])}}; }
Floats Plus(Floats a, Floats b) { return {{vaddq_f32(a.v[0], b.v[0]), vaddq_f32(a.v[1], b.v[1])}}; }
Floats Added(Floats a, Floats b, Floats sum) {
  return {{vfmaq_f32(sum.v[0], a.v[0], b.v[0]), vfmaq_f32(sum.v[1], a.v[1], b.v[1])}};
}
template <int kLane>
Floats Added(Floats a, Lane<float32x4_t, kLane> b, Floats sum) {
  return {{vfmaq_laneq_f32(sum.v[0], a.v[0], b.four, kLane), vfmaq_laneq_f32(sum.v[1], a.v[1], b.four, kLane)}};
}
Floats Subtracted(Floats a, Floats b, Floats sum) {
  return {{vfmsq_f32(sum.v[0], a.v[0], b.v[0]), vfmsq_f32(sum.v[1], a.v[1], b.v[1])}};
}

float16x8_t LoadHalves(const uint8_t* from) { return vreinterpretq_f16_u8(vld1q_u8(from)); }
Floats Widened(float16x8_t v) { return {{vcvt_f32_f16(vget_low_f16(v)), vcvt_high_f32_f16(v)}}; }
Floats WidenHalves(const uint8_t* from) { return Widened(LoadHalves(from)); }
Floats RoundedToHalf(Floats x) { return Widened(vcvt_high_f16_f32(vcvt_f16_f32(x.v[0]), x.v[1])); }
Floats WidenUpper(const uint8_t* from) {
  const uint16x8_t v = vreinterpretq_u16_u8(vld1q_u8(from));
  return {{vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(v), 16)), vreinterpretq_f32_u32(vshll_high_n_u16(v, 16))}};
}
Two<uint32x4_t> WidenBytes(const uint8_t* from) {
  const uint16x8_t v = vmovl_u8(vld1_u8(from));
  return {{vmovl_u16(vget_low_u16(v)), vmovl_high_u16(v)}};
}
Floats WidenUnsigned(const uint8_t* from) {
  const auto v = WidenBytes(from);
  return {{vcvtq_f32_u32(v.v[0]), vcvtq_f32_u32(v.v[1])}};
}
Floats WidenSigned(const uint8_t* from) {
  const int16x8_t v = vmovl_s8(vreinterpret_s8_u8(vld1_u8(from)));
  return {{vcvtq_f32_s32(vmovl_s16(vget_low_s16(v))), vcvtq_f32_s32(vmovl_high_s16(v))}};
}
// Numbers with the smallest exponents are subnormal.
Floats WidenExponents(const uint8_t* from) {
  const auto e = WidenBytes(from);
  const auto power = [](uint32x4_t e) {
    return vreinterpretq_f32_s32(vmaxq_s32(vreinterpretq_s32_u32(vsubq_u32(vshlq_n_u32(e, 23), vdupq_n_u32(1u << 23))),
                                           vreinterpretq_s32_u32(vaddq_u32(vshlq_n_u32(e, 21), vdupq_n_u32(1u << 21)))));
  };
  return {{power(e.v[0]), power(e.v[1])}};
}

constexpr int kRoundedBlocks = kMostTokens;

// Rounds as ggml does: multiplies by 127 / largest, ties to even, and stores the scale in 16 bits.
void RoundBlocks(const RoundedBlocks& blocks, const Format& format) {
  constexpr int kQuads = kBlock / 4;
  for (int i = 0; i < blocks.count(); ++i) {
    const float* from = blocks.Values(i);
    float32x4_t x[kQuads], sizes = vdupq_n_f32(0);
    for (int q = 0; q < kQuads; ++q) {
      x[q] = vld1q_f32(from + 4 * q);
      sizes = vmaxq_f32(sizes, vabsq_f32(x[q]));
    }
    const float largest = vmaxvq_f32(sizes), inverse = largest == 0 ? 0 : 127 / largest;
    int16x4_t rounded[kQuads];
    for (int q = 0; q < kQuads; ++q) rounded[q] = vqmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(x[q], inverse)));
    int8x8_t steps[kQuads / 2];  // two each
    for (int s = 0; s < kQuads / 2; ++s) steps[s] = vqmovn_s16(vcombine_s16(rounded[2 * s], rounded[2 * s + 1]));
    const int token = i % blocks.tokens;
    int32_t* const rows = blocks.rows + i / blocks.tokens * blocks.block_numbers;
    for (int s = 0; s < kQuads / 2; ++s) {
      vst1_lane_s32(rows + PlaceOf(2 * s, token, blocks.tokens), vreinterpret_s32_s8(steps[s]), 0);
      vst1_lane_s32(rows + PlaceOf(2 * s + 1, token, blocks.tokens), vreinterpret_s32_s8(steps[s]), 1);
    }
    const auto store = [&](auto number, int64_t row) { std::memcpy(rows + row * blocks.tokens + token, &number, 4); };
    const float scale = static_cast<float>(static_cast<__fp16>(largest / 127));
    store(scale, kScaleRow);
    const int32_t first = vaddlv_s8(steps[0]) + vaddlv_s8(steps[1]), second = vaddlv_s8(steps[2]) + vaddlv_s8(steps[3]);
    if (format.terms == Terms::kMinimum) store(scale * static_cast<float>(first + second), kSumRow);
    else if (format.terms == Terms::kOffset) store(-format.offset * (first + second), kSumRow);
    else {
      store(-format.offset * first, kSumRow);
      store(-format.offset * second, kSumRow + 1);
    }
  }
}

#include "kernels/matmul/kernel-body.h"
