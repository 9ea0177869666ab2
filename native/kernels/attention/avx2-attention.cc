// Kernels for AVX2: the lanes of a sum are two registers.
#include "base/target.h"
#include "kernels/attention/kernels.h"

#ifdef ONPOLICY_X86_ATTENTION
#include <immintrin.h>

#include <initializer_list>

ONPOLICY_BEGIN_TARGET("f16c,fma,avx2")

namespace onpolicy::attention {
namespace {

struct Wide {
  __m256 low, high;
};
constexpr int kTileSums = 4, kTileRows = 2, kValueRows = 2, kValueVectors = 2, kDeltaRows = 1, kManyRows = 6, kManyVectors = 1, kScoreRows = 3, kScoreVectors = 1;

inline Wide LoadFloats(const float* from) { return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}; }
inline void StoreFloats(Wide v, float* to) {
  _mm256_storeu_ps(to, v.low);
  _mm256_storeu_ps(to + 8, v.high);
}
inline Wide SetFloats(float value) { return {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
inline Wide Multiply(Wide a, Wide b) { return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
inline Wide Divide(Wide a, Wide b) { return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)}; }
inline Wide Add(Wide a, Wide b) { return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)}; }
inline Wide Subtract(Wide a, Wide b) { return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)}; }
inline Wide Added(Wide a, Wide b, Wide sum) {
  return {_mm256_fmadd_ps(a.low, b.low, sum.low), _mm256_fmadd_ps(a.high, b.high, sum.high)};
}
inline Wide Largest(Wide a, Wide b) { return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)}; }
inline Wide Rounded(Wide a) {
  constexpr int kToEven = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(a.low, kToEven), _mm256_round_ps(a.high, kToEven)};
}
inline __m256 PowersOfTwo(__m256 n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
}
inline Wide PowerOfTwo(Wide n) { return {PowersOfTwo(n.low), PowersOfTwo(n.high)}; }
inline Wide OrZero(Wide x, Wide floor, Wide value) {
  return {_mm256_and_ps(_mm256_cmp_ps(x.low, floor.low, _CMP_GE_OQ), value.low),
          _mm256_and_ps(_mm256_cmp_ps(x.high, floor.high, _CMP_GE_OQ), value.high)};
}
inline __m256 WhereEight(int bits, __m256 value, __m256 other) {
  const __m256i ones = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i is_one = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(bits), ones), ones);
  return _mm256_blendv_ps(other, value, _mm256_castsi256_ps(is_one));
}
inline Wide Where(uint16_t bits, Wide value, Wide other) {
  return {WhereEight(bits, value.low, other.low), WhereEight(bits >> 8, value.high, other.high)};
}
inline Wide WidenHalves(const uint8_t* from) {
  const auto* halves = reinterpret_cast<const __m128i*>(from);
  return {_mm256_cvtph_ps(_mm_loadu_si128(halves)), _mm256_cvtph_ps(_mm_loadu_si128(halves + 1))};
}
inline float WidenHalf(const uint8_t* from) {
  uint16_t half;
  __builtin_memcpy(&half, from, 2);
  return _cvtsh_ss(half);
}
inline __m256 WidenEight(const uint8_t* from) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
}
inline Wide WidenSigned(const uint8_t* from) { return {WidenEight(from), WidenEight(from + 8)}; }
inline float LargestOf(Wide v) {
  const __m256 eight = _mm256_max_ps(v.low, v.high);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

inline __m256 Eight(Wide v) { return _mm256_add_ps(v.low, v.high); }
inline __m256 Fours(Wide a, Wide b) {
  const __m256 x = Eight(a), y = Eight(b);
  return _mm256_add_ps(_mm256_permute2f128_ps(x, y, 0x20), _mm256_permute2f128_ps(x, y, 0x31));
}

// Adds lanes 8, then 4, 2 and 1 apart, of two vectors at a time.
inline void SumAll(const Wide* sums, float* to) {
  const __m256 a = Fours(sums[0], sums[2]), b = Fours(sums[1], sums[3]);
  const __m256 twos = _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xEE));  // of 0 and 1 | of 2 and 3
  const __m256 all = _mm256_add_ps(_mm256_shuffle_ps(twos, twos, 0x88), _mm256_shuffle_ps(twos, twos, 0xDD));
  _mm_storel_pi(reinterpret_cast<__m64*>(to), _mm256_castps256_ps128(all));
  _mm_storel_pi(reinterpret_cast<__m64*>(to + 2), _mm256_extractf128_ps(all, 1));
}

inline float SumOf(Wide v) {
  const __m256 eight = Eight(v);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

inline void TransposeEights(const __m256* from, __m256* to) {
  __m256 pairs[8], fours[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(from[i], from[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(from[i], from[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    fours[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
    fours[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xEE);
    fours[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
    fours[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xEE);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    to[i] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
    to[i + 4] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
  }
}

// Transposes kLanes vectors by quarters: number j of vector i becomes number i of vector j.
inline void Transpose(Wide* square) {
  __m256 from[8], to[4][8];
#pragma GCC unroll 4
  for (int quarter = 0; quarter < 4; ++quarter) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      const Wide& row = square[quarter / 2 * 8 + i];
      from[i] = quarter % 2 ? row.high : row.low;
    }
    TransposeEights(from, to[quarter]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    square[i] = {to[0][i], to[2][i]};
    square[i + 8] = {to[1][i], to[3][i]};
  }
}

#include "kernels/attention/kernel-body.h"
#include "kernels/attention/many-rows-body.h"
#include "kernels/attention/recurrent-body.h"

uint64_t Visible(const uint16_t* mask) {
  const __m256i unseen = _mm256_set1_epi16(static_cast<int16_t>(0xFC00));
  uint64_t bits = 0;
  for (int i = 0; i < kBlockCells; i += 32) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(mask + i));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(mask + i + 16));
    const __m256i hidden = _mm256_packs_epi16(_mm256_cmpeq_epi16(low, unseen), _mm256_cmpeq_epi16(high, unseen));
    const __m256i bytes = _mm256_permute4x64_epi64(hidden, 0xD8);
    bits |= static_cast<uint64_t>(~static_cast<uint32_t>(_mm256_movemask_epi8(bytes))) << i;
  }
  return bits;
}

bool IsSupported() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}

}  // namespace

constinit const Kernels kAvx2Kernels = {
    "avx2", IsSupported, Visible, Sum, {Attend<CellType::kF16>, Attend<CellType::kQ8_0>, Attend<CellType::kF32>}, Narrow, Widen, Delta, Convolve, AddWeighted};

}  // namespace onpolicy::attention

ONPOLICY_END_TARGET

#endif
