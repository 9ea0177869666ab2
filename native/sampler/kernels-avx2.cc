// The kernels for AVX2 with FMA: 16 lanes are two registers.
#include "sampler/kernels-common.h"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>

ONPOLICY_BEGIN_TARGET("avx2,fma,popcnt,bmi")

namespace onpolicy {
namespace {

#include "sampler/reduce-eight.h"

struct Lanes {
  __m256 low, high;
};
struct Truth {
  __m256 low, high;
};

ONPOLICY_INLINE Lanes Load(const float* from) { return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}; }
ONPOLICY_INLINE void Store(float* to, Lanes v) {
  _mm256_storeu_ps(to, v.low);
  _mm256_storeu_ps(to + 8, v.high);
}
ONPOLICY_INLINE Lanes Splat(float value) { return {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
ONPOLICY_INLINE Lanes Add(Lanes a, Lanes b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
ONPOLICY_INLINE Lanes Subtract(Lanes a, Lanes b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
ONPOLICY_INLINE Lanes Fused(Lanes a, Lanes b, Lanes c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
ONPOLICY_INLINE Lanes Max(Lanes a, Lanes b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
ONPOLICY_INLINE Truth AtLeast(Lanes a, Lanes b) {
  return {_mm256_cmp_ps(a.low, b.low, _CMP_GE_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_GE_OQ)};
}
ONPOLICY_INLINE Truth Unordered(Lanes a, Lanes b) {
  return {_mm256_cmp_ps(a.low, b.low, _CMP_UNORD_Q), _mm256_cmp_ps(a.high, b.high, _CMP_UNORD_Q)};
}
ONPOLICY_INLINE Truth Never() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
ONPOLICY_INLINE Truth Either(Truth a, Truth b) {
  return {_mm256_or_ps(a.low, b.low), _mm256_or_ps(a.high, b.high)};
}
ONPOLICY_INLINE Truth FromBits(uint32_t bits) {
  const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i low = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits)), each);
  const __m256i high = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits >> 8)), each);
  return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(low, each)),
          _mm256_castsi256_ps(_mm256_cmpeq_epi32(high, each))};
}
ONPOLICY_INLINE uint32_t Bits(Truth truth) {
  return static_cast<uint32_t>(_mm256_movemask_ps(truth.low)) |
         static_cast<uint32_t>(_mm256_movemask_ps(truth.high)) << 8;
}
ONPOLICY_INLINE Lanes Choose(Truth truth, Lanes yes, Lanes no) {
  return {_mm256_blendv_ps(no.low, yes.low, truth.low), _mm256_blendv_ps(no.high, yes.high, truth.high)};
}
ONPOLICY_INLINE Lanes ZeroUnless(Lanes v, Truth truth) {
  return {_mm256_and_ps(v.low, truth.low), _mm256_and_ps(v.high, truth.high)};
}
ONPOLICY_INLINE __m256 AddExponent(__m256 v, __m256 shifted) {
  const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(v), exponent));
}
ONPOLICY_INLINE Lanes AddExponent(Lanes v, Lanes shifted) {
  return {AddExponent(v.low, shifted.low), AddExponent(v.high, shifted.high)};
}
ONPOLICY_INLINE float ReduceMax(Lanes v) { return MaxOfEight(_mm256_max_ps(v.low, v.high)); }
ONPOLICY_INLINE float ReduceAdd(Lanes v) { return SumOfEight(_mm256_add_ps(v.low, v.high)); }
ONPOLICY_INLINE uint32_t LowestBit(uint32_t bits) { return _tzcnt_u32(bits); }
ONPOLICY_INLINE uint32_t CountBits(uint32_t bits) { return static_cast<uint32_t>(_mm_popcnt_u32(bits)); }

#include "sampler/kernels-body.h"

}  // namespace

constinit const Kernels kAvx2Kernels = Table("avx2");

}  // namespace onpolicy

ONPOLICY_END_TARGET

#endif
