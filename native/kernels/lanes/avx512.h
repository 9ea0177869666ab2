// 16 lanes of AVX-512F: one register, and a boolean per lane is a mask register. ../README.md explains the operations.
#include "kernels/lanes/reduce-eight.h"

using Lanes = __m512;
using Truth = __mmask16;

inline Lanes Load(const float* from) { return _mm512_loadu_ps(from); }
inline void Store(float* to, Lanes v) { _mm512_storeu_ps(to, v); }
inline Lanes Splat(float value) { return _mm512_set1_ps(value); }
inline Lanes Add(Lanes a, Lanes b) { return _mm512_add_ps(a, b); }
inline Lanes Subtract(Lanes a, Lanes b) { return _mm512_sub_ps(a, b); }
inline Lanes Multiply(Lanes a, Lanes b) { return _mm512_mul_ps(a, b); }
inline Lanes Divide(Lanes a, Lanes b) { return _mm512_div_ps(a, b); }
inline Lanes Fused(Lanes a, Lanes b, Lanes c) { return _mm512_fmadd_ps(a, b, c); }
inline Lanes Max(Lanes a, Lanes b) { return _mm512_max_ps(a, b); }
inline Lanes Rounded(Lanes v) { return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline Truth AtLeast(Lanes a, Lanes b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
inline Truth Unordered(Lanes a, Lanes b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q); }
inline Truth Never() { return 0; }
inline Truth Either(Truth a, Truth b) { return static_cast<Truth>(a | b); }
inline Truth FromBits(uint32_t bits) { return static_cast<Truth>(bits); }
inline uint32_t Bits(Truth truth) { return truth; }
inline Lanes Choose(Truth truth, Lanes yes, Lanes no) { return _mm512_mask_blend_ps(truth, no, yes); }
inline Lanes ZeroUnless(Lanes v, Truth truth) { return _mm512_maskz_mov_ps(truth, v); }
inline Lanes AddExponent(Lanes v, Lanes shifted) {
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(v), _mm512_slli_epi32(_mm512_castps_si512(shifted), 23)));
}
inline Lanes PowerOfTwo(Lanes whole) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(whole), _mm512_set1_epi32(127)), 23));
}
inline __m256 UpperHalf(Lanes v) { return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1)); }
inline float ReduceMax(Lanes v) { return MaxOfEight(_mm256_max_ps(_mm512_castps512_ps256(v), UpperHalf(v))); }
inline float ReduceAdd(Lanes v) { return SumOfEight(_mm256_add_ps(_mm512_castps512_ps256(v), UpperHalf(v))); }
