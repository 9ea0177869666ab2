// Kernels for AVX-512: the lanes of a sum are one register.
#include "base/target.h"
#include "kernels/attention/kernels.h"

#ifdef ONPOLICY_X86_ATTENTION
#include <immintrin.h>

#include <initializer_list>

ONPOLICY_BEGIN_TARGET("f16c,fma,avx512f,avx512bw,avx512vl,avx512dq")

namespace onpolicy::attention {
namespace {

constexpr int kTileSums = 16, kTileRows = 4, kValueRows = 6, kValueVectors = 4, kDeltaRows = 3, kManyRows = 6, kManyVectors = 4, kScoreRows = 6, kScoreVectors = 2;

#include "kernels/lanes/avx512.h"

inline Lanes WidenHalves(const uint8_t* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
inline float WidenHalf(const uint8_t* from) {
  uint16_t half;
  __builtin_memcpy(&half, from, 2);
  return _cvtsh_ss(half);
}
inline Lanes WidenSigned(const uint8_t* from) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}

// Adds lanes 8, then 4, 2 and 1 apart, of two vectors at a time.
inline void SumAll(const Lanes* sums, float* to) {
  Lanes eights[8], fours[4], twos[2];
  constexpr int kTaken[16] = {0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15};  // so that sums come out in order
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    const Lanes a = sums[kTaken[i]], b = sums[kTaken[i + 8]];
    eights[i] = Add(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    fours[i] = Add(_mm512_shuffle_f32x4(eights[i], eights[i + 4], 0x88), _mm512_shuffle_f32x4(eights[i], eights[i + 4], 0xDD));
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i)
    twos[i] = Add(_mm512_shuffle_ps(fours[i], fours[i + 2], 0x44), _mm512_shuffle_ps(fours[i], fours[i + 2], 0xEE));
  Store(to, Add(_mm512_shuffle_ps(twos[0], twos[1], 0x88), _mm512_shuffle_ps(twos[0], twos[1], 0xDD)));
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
