// Kernels for AVX-512 with 8-bit dot products: a step of a panel is one register.
#include "products/kernels.h"
#include "products/q4-k.h"
#include "products/q6-k.h"
#include "products/q8-0.h"

#ifdef ONPOLICY_X86_PRODUCTS
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("f16c,fma,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("f16c,fma,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")
// GCC 12 takes undefined vectors in its own headers, which are meant, for mistakes.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace onpolicy::products {
namespace {

void WidenHalves(const uint8_t* halves, int64_t count, float* out) {
  for (int64_t i = 0; i < count; i += 16)
    _mm512_store_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(halves + 2 * i))));
}

#include "products/kernel-body.h"

// One block of one token -> a column of the group. As ggml: by 127 / largest, to even, and the scale in 16 bits.
void RoundBlock(const float* x, const Format& format, int tokens, int32_t* column) {
  const __m512 low = _mm512_loadu_ps(x), high = _mm512_loadu_ps(x + 16);
  const float largest = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(low), _mm512_abs_ps(high)));
  const __m512 inverse = _mm512_set1_ps(largest != 0 ? 127.0f / largest : 0.0f);
  const __m512i a = _mm512_cvtps_epi32(_mm512_mul_ps(low, inverse));
  const __m512i b = _mm512_cvtps_epi32(_mm512_mul_ps(high, inverse));
  alignas(16) int32_t steps[kSteps];
  _mm_store_si128(reinterpret_cast<__m128i*>(steps), _mm512_cvtepi32_epi8(a));
  _mm_store_si128(reinterpret_cast<__m128i*>(steps + 4), _mm512_cvtepi32_epi8(b));
  for (int64_t step = 0; step < kSteps; ++step) column[step * tokens] = steps[step];
  const float scale = _cvtsh_ss(_cvtss_sh(largest / 127.0f, _MM_FROUND_TO_NEAREST_INT));
  StoreTerms(scale, _mm512_reduce_add_epi32(a), _mm512_reduce_add_epi32(b), format, tokens, column);
}

// Panels x tokens. All sums stay in registers.
template <Terms kTerms, int kPanels, int kTokens>
void RunTile(const TileInput& input) {
  constexpr int kParts = kTerms == Terms::kHalves ? 2 : 1;
  constexpr int64_t kPartSteps = kSteps / kParts;
  const uint8_t* values[kPanels];
  const float* scales[kPanels];
  __m512 sums[kPanels][kTokens];
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p) {
    values[p] = input.panels[p].values;
    scales[p] = input.panels[p].scales;
#pragma GCC unroll 12
    for (int t = 0; t < kTokens; ++t)
      sums[p][t] = input.adds ? _mm512_loadu_ps(input.outputs[p] + t * input.strides[p]) : _mm512_setzero_ps();
  }
  const int32_t* group = input.group;
  for (int64_t b = 0; b < input.blocks; ++b, group += RowsOf(kTerms) * kTokens) {
    const auto* token_scales = reinterpret_cast<const float*>(group + kScaleRow * kTokens);
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
      __m512i dots[kPanels][kTokens];
#pragma GCC unroll 12
      for (int t = 0; t < kTokens; ++t) {
        const __m512i start = kTerms == Terms::kMinimum ? _mm512_setzero_si512()
                                                        : _mm512_set1_epi32(group[(kSumRow + part) * kTokens + t]);
#pragma GCC unroll 4
        for (int p = 0; p < kPanels; ++p) dots[p][t] = start;
      }
#pragma GCC unroll 8
      for (int64_t step = part * kPartSteps; step < (part + 1) * kPartSteps; ++step) {
        __m512i weights[kPanels];
#pragma GCC unroll 4
        for (int p = 0; p < kPanels; ++p) {
          const uint8_t* at = values[p] + b * kBlockBytes + step * kStepBytes;
          weights[p] = _mm512_load_si512(at);
          if (kPanels == 1) _mm_prefetch(reinterpret_cast<const char*>(at + input.panels[p].ahead), _MM_HINT_T0);
        }
#pragma GCC unroll 12
        for (int t = 0; t < kTokens; ++t) {
          const __m512i x = _mm512_set1_epi32(group[step * kTokens + t]);
#pragma GCC unroll 4
          for (int p = 0; p < kPanels; ++p) dots[p][t] = _mm512_dpbusd_epi32(dots[p][t], weights[p], x);
        }
      }
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) {
        const __m512 scale = _mm512_load_ps(scales[p] + (b * ScalesOf(kTerms) + part) * kPanel);
#pragma GCC unroll 12
        for (int t = 0; t < kTokens; ++t)
          sums[p][t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[p][t]),
                                       _mm512_mul_ps(scale, _mm512_set1_ps(token_scales[t])), sums[p][t]);
      }
    }
    if (kTerms != Terms::kMinimum) continue;
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      const __m512 minimum = _mm512_load_ps(scales[p] + (b * 2 + 1) * kPanel);
#pragma GCC unroll 12
      for (int t = 0; t < kTokens; ++t)
        sums[p][t] = _mm512_fnmadd_ps(minimum, _mm512_set1_ps(token_scales[kTokens + t]), sums[p][t]);
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p)
#pragma GCC unroll 12
    for (int t = 0; t < kTokens; ++t) _mm512_storeu_ps(input.outputs[p] + t * input.strides[p], sums[p][t]);
}

bool IsSupported() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni");
}

// Few tokens take several panels at once: that keeps enough products under way, and reads several streams of memory.
constexpr Tile kTiles[] = {
    ONPOLICY_TILE(12, 1), ONPOLICY_TILE(8, 2), ONPOLICY_TILE(6, 2), ONPOLICY_TILE(4, 2),
    ONPOLICY_TILE(3, 4),  ONPOLICY_TILE(2, 4), ONPOLICY_TILE(1, 4),
};

constexpr Kernels kKernels = {"avx512", IsSupported, Round, {ONPOLICY_PRODUCT_FORMATS(ONPOLICY_EXPAND)}, kTiles};

}  // namespace

const Kernels* const kAvx512Kernels = &kKernels;

}  // namespace onpolicy::products

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

namespace onpolicy::products {

const Kernels* const kAvx512Kernels = nullptr;

}  // namespace onpolicy::products

#endif
