// Kernels for AVX-VNNI: AVX2 with 8-bit dot products, on processors without AVX-512.
#include "base/target.h"
#include "kernels/matmul/kernels.h"

#include <type_traits>
#include <utility>

#ifdef ONPOLICY_X86_PRODUCTS
#include <immintrin.h>

ONPOLICY_BEGIN_TARGET("f16c,fma,avx2,avxvnni")

namespace onpolicy::matmul {
namespace {

constexpr bool kSubtractsWide = false;
constexpr int kTileTokens = 6;
constexpr int TileVectors(int tokens) { return tokens <= 3 ? 2 : 1; }

template <int, int>
void Dot(__m256i& dots, __m256i&, __m256i weights, __m256i x) { dots = _mm256_dpbusd_avx_epi32(dots, weights, x); }

#include "kernels/matmul/avx2-body.h"

bool IsSupported() {
  return __builtin_cpu_supports("avxvnni") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
}

}  // namespace

constinit const Kernels kAvxVnniKernels = {"avxvnni", IsSupported, Round, kTileTokens, {ONPOLICY_PRODUCT_FORMATS(ONPOLICY_TILES)}};

}  // namespace onpolicy::matmul

ONPOLICY_END_TARGET

#endif
