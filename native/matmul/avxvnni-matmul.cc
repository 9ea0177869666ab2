// Kernels for AVX-VNNI: AVX2 with 8-bit dot products, on processors without AVX-512.
#include "matmul/kernels.h"

#include <type_traits>
#include <utility>

#ifdef ONPOLICY_X86_PRODUCTS
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("f16c,fma,avx2,avxvnni"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("f16c,fma,avx2,avxvnni")
#endif

namespace onpolicy::matmul {
namespace {

constexpr bool kSubtractsWide = false;
constexpr int kTileTokens = 6;
constexpr int TileVectors(int tokens) { return tokens <= 3 ? 2 : 1; }

template <int, int>
void Dot(__m256i& dots, __m256i&, __m256i weights, __m256i x) { dots = _mm256_dpbusd_avx_epi32(dots, weights, x); }

#include "matmul/avx2-body.h"

bool IsSupported() {
  return __builtin_cpu_supports("avxvnni") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
}

constexpr Kernels kKernels = {"avxvnni", IsSupported, Round, kTileTokens, {ONPOLICY_PRODUCT_FORMATS(ONPOLICY_TILES)}};

}  // namespace

const Kernels* const kAvxVnniKernels = &kKernels;

}  // namespace onpolicy::matmul

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

namespace onpolicy::matmul {

const Kernels* const kAvxVnniKernels = nullptr;

}  // namespace onpolicy::matmul

#endif
