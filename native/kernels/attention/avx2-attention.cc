// Kernels for AVX2: the lanes of a sum are two registers.
#include "base/target.h"
#include "kernels/attention/kernels.h"

#ifdef ONPOLICY_X86_ATTENTION
#include <immintrin.h>

#include <initializer_list>

ONPOLICY_BEGIN_TARGET("f16c,fma,avx2")

namespace onpolicy::attention {
namespace {

constexpr int kTileSums = 4, kTileRows = 2, kValueRows = 2, kValueVectors = 2, kDeltaRows = 1, kManyRows = 6, kManyVectors = 1, kScoreRows = 3, kScoreVectors = 1;

#include "kernels/lanes/avx2.h"

inline Lanes WidenHalves(const uint8_t* from) {
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
inline Lanes WidenSigned(const uint8_t* from) { return {WidenEight(from), WidenEight(from + 8)}; }

inline __m256 Eight(Lanes v) { return _mm256_add_ps(v.low, v.high); }
inline __m256 Fours(Lanes a, Lanes b) {
  const __m256 x = Eight(a), y = Eight(b);
  return _mm256_add_ps(_mm256_permute2f128_ps(x, y, 0x20), _mm256_permute2f128_ps(x, y, 0x31));
}

// Adds lanes 8, then 4, 2 and 1 apart, of two vectors at a time.
inline void SumAll(const Lanes* sums, float* to) {
  const __m256 a = Fours(sums[0], sums[2]), b = Fours(sums[1], sums[3]);
  const __m256 twos = _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xEE));  // of 0 and 1 | of 2 and 3
  const __m256 all = _mm256_add_ps(_mm256_shuffle_ps(twos, twos, 0x88), _mm256_shuffle_ps(twos, twos, 0xDD));
  _mm_storel_pi(reinterpret_cast<__m64*>(to), _mm256_castps256_ps128(all));
  _mm_storel_pi(reinterpret_cast<__m64*>(to + 2), _mm256_extractf128_ps(all, 1));
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
inline void Transpose(Lanes* square) {
  __m256 from[8], to[4][8];
#pragma GCC unroll 4
  for (int quarter = 0; quarter < 4; ++quarter) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      const Lanes& row = square[quarter / 2 * 8 + i];
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
