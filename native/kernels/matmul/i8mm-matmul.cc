// Kernels for ARM with matmuls of bytes: eight values of two rows by those of two tokens.
#include "kernels/matmul/kernels.h"

#include <type_traits>
#include <utility>

#ifdef ONPOLICY_ARM_PRODUCTS
#include <arm_neon.h>
#include <sys/auxv.h>

#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+dotprod+i8mm")
#pragma GCC optimize("no-schedule-insns")  // GCC 12 would move so many loads ahead that sums leave the registers

namespace onpolicy::matmul {
namespace {

constexpr bool kPairsSteps = true;
constexpr int kTileTokens = 8, kPairedTokens = 4;  // fewer tokens have dot products
constexpr int TileVectors(int tokens) { return tokens <= 3 ? 2 : 1; }

#include "kernels/matmul/neon-body.h"

// Registers of four pairs of rows, first of one token, then of the next.
template <typename Register>
struct Four {
  Register v[4];
};

// Returns two steps of each row side by side.
Four<uint8x16_t> Paired(Bytes even, Bytes odd) {
  const auto zip = [&](int i, bool is_high) {
    const uint32x4_t a = vreinterpretq_u32_u8(even.v[i]), b = vreinterpretq_u32_u8(odd.v[i]);
    return vreinterpretq_u8_u32(is_high ? vzip2q_u32(a, b) : vzip1q_u32(a, b));
  };
  return {{zip(0, false), zip(0, true), zip(1, false), zip(1, true)}};
}
// Returns numbers of rows, repeated for both tokens.
Four<float32x4_t> ForBoth(Floats rows) {
  const float64x2_t low = vreinterpretq_f64_f32(rows.v[0]), high = vreinterpretq_f64_f32(rows.v[1]);
  return {{vreinterpretq_f32_f64(vzip1q_f64(low, low)), vreinterpretq_f32_f64(vzip2q_f64(low, low)),
           vreinterpretq_f32_f64(vzip1q_f64(high, high)), vreinterpretq_f32_f64(vzip2q_f64(high, high))}};
}
// Returns numbers of two tokens, repeated for both rows. The last token may be alone.
template <int kTokens, int kPair>
float32x4_t TwoAt(const int32_t* row) {
  const auto* numbers = reinterpret_cast<const float*>(row) + 2 * kPair;
  if constexpr (2 * kPair + 1 == kTokens) return vdupq_n_f32(*numbers);
  const float32x2_t two = vld1_f32(numbers);
  return vcombine_f32(vdup_lane_f32(two, 0), vdup_lane_f32(two, 1));
}

// Like RunRows, for half of a panel.
template <typename Type, int kTokens>
void RunPairs(const TileInput& input, int64_t row) {
  constexpr Terms kTerms = Type::kTerms;
  constexpr int kPairs = (kTokens + 1) / 2, kParts = kTerms == Terms::kHalves ? 2 : 1, kPartSteps = kSteps / kParts;
  const Blocks<Type> panel(input.panel, row);
  Four<float32x4_t> sums[kPairs];
  Repeat<kPairs>([&](auto p) ONPOLICY_INLINED { sums[p] = ForBoth(SetFloats(0)); });
  const int32_t* group = input.group;
  const uint8_t* ahead = input.ahead;
  for (int64_t b = 0; b < input.blocks; ++b, group += RowsOf(kTerms) * kTokens) {
    FetchAhead(input, &ahead);
    Repeat<kParts>([&](auto part) ONPOLICY_INLINED {
      Four<int32x4_t> dots[kPairs];
      Repeat<kPairs>([&](auto p) ONPOLICY_INLINED {
        const int32x4_t start = kTerms == Terms::kMinimum || Type::kLargest == 255
                                    ? vdupq_n_s32(0)
                                    : vreinterpretq_s32_f32(TwoAt<kTokens, p>(group + (kSumRow + part) * kTokens));
        dots[p] = {{start, start, start, start}};
      });
      Repeat<kPartSteps / 2>([&](auto i) ONPOLICY_INLINED {
        constexpr int kStep = decltype(part)::value * kPartSteps + 2 * decltype(i)::value;
        const auto weights = Paired(panel.template Weights<kStep>(b), panel.template Weights<kStep + 1>(b));
        Repeat<kPairs>([&](auto p) ONPOLICY_INLINED {
          const int32x4_t x = vld1q_s32(group + kStep * kTokens + 4 * p);
          for (int r = 0; r < 4; ++r) asm("smmla %0.4s, %1.16b, %2.16b" : "+w"(dots[p].v[r]) : "w"(x), "w"(weights.v[r]));
        });
      });
      const auto scale = ForBoth(panel.Scale(b, part));
      Repeat<kPairs>([&](auto p) ONPOLICY_INLINED {
        const float32x4_t scales = TwoAt<kTokens, p>(group + kScaleRow * kTokens);
        for (int r = 0; r < 4; ++r) sums[p].v[r] = vfmaq_f32(sums[p].v[r], vcvtq_f32_s32(dots[p].v[r]), vmulq_f32(scale.v[r], scales));
      });
    });
    if constexpr (kTerms == Terms::kMinimum) {
      const auto minimum = ForBoth(panel.Minimum(b));
      Repeat<kPairs>([&](auto p) ONPOLICY_INLINED {
        const float32x4_t subtracted = TwoAt<kTokens, p>(group + kSumRow * kTokens);
        for (int r = 0; r < 4; ++r) sums[p].v[r] = vfmsq_f32(sums[p].v[r], minimum.v[r], subtracted);
      });
    }
  }
  Repeat<kTokens>([&](auto t) ONPOLICY_INLINED {
    const auto& sum = sums[t / 2];
    float* const y = input.y + row + t * input.stride;
    for (int r = 0; r < 4; ++r) vst1_f32(y + 2 * r, t % 2 ? vget_high_f32(sum.v[r]) : vget_low_f32(sum.v[r]));
  });
}

template <typename Type, int kTokens>
void RunPairTile(const TileInput& input) {
  if constexpr (Type::kTerms == Terms::kFloats || kTokens < kPairedTokens) RunTile<Type, kTokens>(input);
  else ForEachPart<kLanes>(input, RunPairs<Type, kTokens>);
}

template <typename Type, int... kIndices>
constexpr std::array<RunTileFunction*, kMostTokens> PairTilesOf(std::integer_sequence<int, kIndices...>) {
  return {RunPairTile<Type, kIndices + 1>...};
}
#define ONPOLICY_PAIR_TILES(name) PairTilesOf<name>(std::make_integer_sequence<int, kTileTokens>()),

bool IsSupported() { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0 && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0; }

}  // namespace

constinit const Kernels kI8mmKernels = {"i8mm", IsSupported, Round, kTileTokens, {ONPOLICY_PRODUCT_FORMATS(ONPOLICY_PAIR_TILES)}};

}  // namespace onpolicy::matmul

#pragma GCC pop_options

#endif
