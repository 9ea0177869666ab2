// Kernels for AVX-512: the lanes of a sum are one register.
#include "base/target.h"
#include "kernels/attention/kernels.h"

#ifdef ONPOLICY_X86_ATTENTION
#include <immintrin.h>

#include <initializer_list>

ONPOLICY_BEGIN_TARGET("f16c,fma,avx512f,avx512bw,avx512vl,avx512dq")

namespace onpolicy::attention {
namespace {

using Wide = __m512;
constexpr int kTileSums = 16, kTileRows = 4, kValueRows = 6, kValueVectors = 4, kDeltaRows = 3, kManyRows = 6, kManyVectors = 4, kScoreRows = 6, kScoreVectors = 2;

inline Wide LoadFloats(const float* from) { return _mm512_loadu_ps(from); }
inline void StoreFloats(Wide v, float* to) { _mm512_storeu_ps(to, v); }
inline Wide SetFloats(float value) { return _mm512_set1_ps(value); }
inline Wide Multiply(Wide a, Wide b) { return _mm512_mul_ps(a, b); }
inline Wide Divide(Wide a, Wide b) { return _mm512_div_ps(a, b); }
inline Wide Add(Wide a, Wide b) { return _mm512_add_ps(a, b); }
inline Wide Subtract(Wide a, Wide b) { return _mm512_sub_ps(a, b); }
inline Wide Added(Wide a, Wide b, Wide sum) { return _mm512_fmadd_ps(a, b, sum); }
inline Wide Largest(Wide a, Wide b) { return _mm512_max_ps(a, b); }
inline Wide Rounded(Wide a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline Wide PowerOfTwo(Wide n) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23));
}
inline Wide OrZero(Wide x, Wide floor, Wide value) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, floor, _CMP_GE_OQ), value);
}
inline Wide Where(uint16_t bits, Wide value, Wide other) { return _mm512_mask_mov_ps(other, bits, value); }
inline Wide WidenHalves(const uint8_t* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
inline float WidenHalf(const uint8_t* from) {
  uint16_t half;
  __builtin_memcpy(&half, from, 2);
  return _cvtsh_ss(half);
}
inline Wide WidenSigned(const uint8_t* from) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
inline float LargestOf(Wide v) {
  // The order of the set for AVX2, so that the result is the same if a lane is not a number.
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

// Adds lanes 8, then 4, 2 and 1 apart, of two vectors at a time.
inline void SumAll(const Wide* sums, float* to) {
  Wide eights[8], fours[4], twos[2];
  constexpr int kTaken[16] = {0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15};  // so that sums come out in order
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    const Wide a = sums[kTaken[i]], b = sums[kTaken[i + 8]];
    eights[i] = Add(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    fours[i] = Add(_mm512_shuffle_f32x4(eights[i], eights[i + 4], 0x88), _mm512_shuffle_f32x4(eights[i], eights[i + 4], 0xDD));
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i)
    twos[i] = Add(_mm512_shuffle_ps(fours[i], fours[i + 2], 0x44), _mm512_shuffle_ps(fours[i], fours[i + 2], 0xEE));
  StoreFloats(Add(_mm512_shuffle_ps(twos[0], twos[1], 0x88), _mm512_shuffle_ps(twos[0], twos[1], 0xDD)), to);
}

inline float SumOf(Wide v) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

#include "kernels/attention/avx512-transpose.h"
#include "kernels/attention/kernel-body.h"
#include "kernels/attention/many-rows-body.h"
#include "kernels/attention/recurrent-body.h"

uint64_t Visible(const uint16_t* mask) {
  const __m512i unseen = _mm512_set1_epi16(static_cast<int16_t>(0xFC00));
  return _mm512_cmpneq_epi16_mask(_mm512_loadu_si512(mask), unseen) |
         static_cast<uint64_t>(_mm512_cmpneq_epi16_mask(_mm512_loadu_si512(mask + 32), unseen)) << 32;
}

bool IsSupported() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq");
}

}  // namespace

constinit const Kernels kAvx512Kernels = {
    "avx512", IsSupported, Visible, Sum, {Attend<CellType::kF16>, Attend<CellType::kQ8_0>, Attend<CellType::kF32>}, Narrow, Widen,
    Delta, Convolve, AddWeighted};

}  // namespace onpolicy::attention

ONPOLICY_END_TARGET

#endif
