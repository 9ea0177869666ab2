// The kernels for AVX-512F: 16 lanes are one register, and a boolean per lane is a mask register.
#include "sampler/kernels-common.h"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>

#if defined(__clang__) && !defined(__apple_build_version__) && __clang_major__ >= 18 && __clang_major__ < 22
// In these compiler releases, registers of 512 bits are a separate feature.
ONPOLICY_BEGIN_TARGET("avx512f,evex512,avx2,fma,popcnt,bmi")
#else
ONPOLICY_BEGIN_TARGET("avx512f,avx2,fma,popcnt,bmi")
#endif

namespace onpolicy {
namespace {

#include "sampler/reduce-eight.h"

struct Lanes {
  __m512 all;
};
struct Truth {
  __mmask16 all;
};

ONPOLICY_INLINE Lanes Load(const float* from) { return {_mm512_loadu_ps(from)}; }
ONPOLICY_INLINE void Store(float* to, Lanes v) { _mm512_storeu_ps(to, v.all); }
ONPOLICY_INLINE Lanes Splat(float value) { return {_mm512_set1_ps(value)}; }
ONPOLICY_INLINE Lanes Add(Lanes a, Lanes b) { return {_mm512_add_ps(a.all, b.all)}; }
ONPOLICY_INLINE Lanes Subtract(Lanes a, Lanes b) { return {_mm512_sub_ps(a.all, b.all)}; }
ONPOLICY_INLINE Lanes Fused(Lanes a, Lanes b, Lanes c) { return {_mm512_fmadd_ps(a.all, b.all, c.all)}; }
ONPOLICY_INLINE Lanes Max(Lanes a, Lanes b) { return {_mm512_max_ps(a.all, b.all)}; }
ONPOLICY_INLINE Truth AtLeast(Lanes a, Lanes b) { return {_mm512_cmp_ps_mask(a.all, b.all, _CMP_GE_OQ)}; }
ONPOLICY_INLINE Truth Unordered(Lanes a, Lanes b) { return {_mm512_cmp_ps_mask(a.all, b.all, _CMP_UNORD_Q)}; }
ONPOLICY_INLINE Truth Never() { return {0}; }
ONPOLICY_INLINE Truth Either(Truth a, Truth b) { return {static_cast<__mmask16>(a.all | b.all)}; }
ONPOLICY_INLINE Truth FromBits(uint32_t bits) { return {static_cast<__mmask16>(bits)}; }
ONPOLICY_INLINE uint32_t Bits(Truth truth) { return truth.all; }
ONPOLICY_INLINE Lanes Choose(Truth truth, Lanes yes, Lanes no) {
  return {_mm512_mask_blend_ps(truth.all, no.all, yes.all)};
}
ONPOLICY_INLINE Lanes ZeroUnless(Lanes v, Truth truth) { return {_mm512_maskz_mov_ps(truth.all, v.all)}; }
ONPOLICY_INLINE Lanes AddExponent(Lanes v, Lanes shifted) {
  const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(shifted.all), 23);
  return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(v.all), exponent))};
}
ONPOLICY_INLINE __m256 UpperHalf(__m512 v) {
  return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1));
}
ONPOLICY_INLINE float ReduceMax(Lanes v) { return MaxOfEight(_mm256_max_ps(_mm512_castps512_ps256(v.all), UpperHalf(v.all))); }
ONPOLICY_INLINE float ReduceAdd(Lanes v) { return SumOfEight(_mm256_add_ps(_mm512_castps512_ps256(v.all), UpperHalf(v.all))); }
ONPOLICY_INLINE uint32_t LowestBit(uint32_t bits) { return _tzcnt_u32(bits); }
ONPOLICY_INLINE uint32_t CountBits(uint32_t bits) { return static_cast<uint32_t>(_mm_popcnt_u32(bits)); }

#include "sampler/kernels-body.h"

}  // namespace

constinit const Kernels kAvx512Kernels = Table("avx512");

}  // namespace onpolicy

ONPOLICY_END_TARGET

#endif
