// Kernels for AVX2: half of a panel's rows is one register of each step.
#include "products/kernels.h"
#include "products/q4-k.h"
#include "products/q6-k.h"
#include "products/q8-0.h"

#ifdef ONPOLICY_X86_PRODUCTS
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("f16c,fma,avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("f16c,fma,avx2")
#endif

namespace onpolicy::products {
namespace {

void WidenHalves(const uint8_t* halves, int64_t count, float* out) {
  for (int64_t i = 0; i < count; i += 8)
    _mm256_store_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves + 2 * i))));
}

#include "products/kernel-body.h"

int32_t SumOf(__m256i v) {
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xB1)));
}

float LargestOf(__m256 v) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

// One block of one token -> a column of the group. As ggml: by 127 / largest, to even, and the scale in 16 bits.
void RoundBlock(const float* x, const Format& format, int tokens, int32_t* column) {
  const __m256 no_sign = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
  __m256 parts[4], sizes = _mm256_setzero_ps();
  for (int i = 0; i < 4; ++i) {
    parts[i] = _mm256_loadu_ps(x + 8 * i);
    sizes = _mm256_max_ps(sizes, _mm256_and_ps(parts[i], no_sign));
  }
  const float largest = LargestOf(sizes);
  const __m256 inverse = _mm256_set1_ps(largest != 0 ? 127.0f / largest : 0.0f);
  __m256i rounded[4];
  for (int i = 0; i < 4; ++i) rounded[i] = _mm256_cvtps_epi32(_mm256_mul_ps(parts[i], inverse));
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(rounded[0], rounded[1]), _mm256_packs_epi32(rounded[2], rounded[3]));
  alignas(32) int32_t steps[kSteps];
  _mm256_store_si256(reinterpret_cast<__m256i*>(steps),
                     _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
  for (int64_t step = 0; step < kSteps; ++step) column[step * tokens] = steps[step];
  const float scale = _cvtsh_ss(_cvtss_sh(largest / 127.0f, _MM_FROUND_TO_NEAREST_INT));
  StoreTerms(scale, SumOf(_mm256_add_epi32(rounded[0], rounded[1])), SumOf(_mm256_add_epi32(rounded[2], rounded[3])), format,
             tokens, column);
}

// Two products of bytes are added in 16 bits: both sides must not be large. Weights of 8 bits are therefore multiplied as their
// size, 128 at most, by activations with their sign. Those of up to 6 bits fit as they are.
constexpr bool IsSigned(Terms terms) { return terms == Terms::kOffset; }

// One half of a panel x tokens.
template <Terms kTerms, int kTokens>
void RunHalf(const TileInput& input, int half) {
  constexpr int kParts = kTerms == Terms::kHalves ? 2 : 1;
  constexpr int64_t kPartSteps = kSteps / kParts;
  const uint8_t* values = input.panels[0].values + half * 32;
  const float* scales = input.panels[0].scales + half * 8;
  float* y = input.outputs[0] + half * 8;
  const __m256i ones = _mm256_set1_epi16(1), flip = _mm256_set1_epi8(static_cast<char>(0x80));
  __m256 sums[kTokens];
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) sums[t] = input.adds ? _mm256_loadu_ps(y + t * input.strides[0]) : _mm256_setzero_ps();
  const int32_t* group = input.group;
  for (int64_t b = 0; b < input.blocks; ++b, group += RowsOf(kTerms) * kTokens) {
    const auto* token_scales = reinterpret_cast<const float*>(group + kScaleRow * kTokens);
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
      __m256i dots[kTokens];
#pragma GCC unroll 4
      for (int t = 0; t < kTokens; ++t)
        dots[t] = kTerms == Terms::kHalves ? _mm256_set1_epi32(group[(kSumRow + part) * kTokens + t]) : _mm256_setzero_si256();
#pragma GCC unroll 8
      for (int64_t step = part * kPartSteps; step < (part + 1) * kPartSteps; ++step) {
        __m256i weights = _mm256_load_si256(reinterpret_cast<const __m256i*>(values + b * kBlockBytes + step * kStepBytes));
        if (IsSigned(kTerms)) weights = _mm256_xor_si256(weights, flip);
        const __m256i sizes = IsSigned(kTerms) ? _mm256_abs_epi8(weights) : weights;
#pragma GCC unroll 4
        for (int t = 0; t < kTokens; ++t) {
          __m256i x = _mm256_set1_epi32(group[step * kTokens + t]);
          if (IsSigned(kTerms)) x = _mm256_sign_epi8(x, weights);
          dots[t] = _mm256_add_epi32(dots[t], _mm256_madd_epi16(_mm256_maddubs_epi16(sizes, x), ones));
        }
      }
      const __m256 scale = _mm256_load_ps(scales + (b * ScalesOf(kTerms) + part) * kPanel);
#pragma GCC unroll 4
      for (int t = 0; t < kTokens; ++t)
        sums[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots[t]), _mm256_mul_ps(scale, _mm256_set1_ps(token_scales[t])), sums[t]);
    }
    if (kTerms != Terms::kMinimum) continue;
    const __m256 minimum = _mm256_load_ps(scales + (b * 2 + 1) * kPanel);
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t)
      sums[t] = _mm256_fnmadd_ps(minimum, _mm256_set1_ps(token_scales[kTokens + t]), sums[t]);
  }
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) _mm256_storeu_ps(y + t * input.strides[0], sums[t]);
}

template <Terms kTerms, int, int kTokens>
void RunTile(const TileInput& input) {
  for (int half = 0; half < 2; ++half) RunHalf<kTerms, kTokens>(input, half);
}

bool IsSupported() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}

constexpr Tile kTiles[] = {ONPOLICY_TILE(4, 1), ONPOLICY_TILE(3, 1), ONPOLICY_TILE(2, 1), ONPOLICY_TILE(1, 1)};

constexpr Kernels kKernels = {"avx2", IsSupported, Round, {ONPOLICY_PRODUCT_FORMATS(ONPOLICY_EXPAND)}, kTiles};

}  // namespace

const Kernels* const kAvx2Kernels = &kKernels;

}  // namespace onpolicy::products

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

namespace onpolicy::products {

const Kernels* const kAvx2Kernels = nullptr;

}  // namespace onpolicy::products

#endif
