// Kernels for AVX2.
#include "base/target.h"
#include "kernels/matmul/kernels.h"

#include <type_traits>
#include <utility>

#ifdef ONPOLICY_X86_PRODUCTS
#include <immintrin.h>

ONPOLICY_BEGIN_TARGET("f16c,fma,avx2")

namespace onpolicy::matmul {
namespace {

constexpr bool kSubtractsWide = true;
constexpr int kTileTokens = 4;
constexpr int TileVectors(int tokens) { return tokens <= 2 ? 2 : 1; }

// Two products of bytes are added in 16 bits, so both factors must not be large. The absolute values of 8-bit weights, at most 128, are
// therefore multiplied by activations with the sign of the weight. Weights of up to 6 bits fit unchanged, and so do sums over some steps.
template <int kLargest, int kStep>
void Dot(__m256i& dots, __m256i& held, __m256i weights, __m256i x) {
  constexpr bool kIsWide = kLargest == 255;
  constexpr int kHeldSteps = kIsWide ? 1 : 32767 / (2 * 127 * kLargest);
  if (kIsWide) {
    weights = _mm256_xor_si256(weights, _mm256_set1_epi8(static_cast<char>(0x80)));
    x = _mm256_sign_epi8(x, weights);
    weights = _mm256_abs_epi8(weights);
  }
  const __m256i products = _mm256_maddubs_epi16(weights, x);
  held = kStep % kHeldSteps == 0 ? products : _mm256_add_epi16(held, products);
  if ((kStep + 1) % kHeldSteps == 0) dots = _mm256_add_epi32(dots, _mm256_madd_epi16(held, _mm256_set1_epi16(1)));
  asm("" : "+x"(dots));  // otherwise compilers keep the products of all steps to add them as a tree, which takes too many registers
}

#include "kernels/matmul/avx2-body.h"

bool IsSupported() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}

}  // namespace

constinit const Kernels kAvx2Kernels = {"avx2", IsSupported, Round, kTileTokens, {ONPOLICY_PRODUCT_FORMATS(ONPOLICY_TILES)}};

}  // namespace onpolicy::matmul

ONPOLICY_END_TARGET

#endif
