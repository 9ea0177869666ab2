// 16 lanes of AVX2 with FMA: two registers. ../README.md explains the operations.
#include "kernels/lanes/reduce-eight.h"

struct Lanes {
  __m256 low, high;
};
struct Truth {
  __m256 low, high;
};

inline Lanes Load(const float* from) { return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}; }
inline void Store(float* to, Lanes v) {
  _mm256_storeu_ps(to, v.low);
  _mm256_storeu_ps(to + 8, v.high);
}
inline Lanes Splat(float value) { return {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
inline Lanes Add(Lanes a, Lanes b) { return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)}; }
inline Lanes Subtract(Lanes a, Lanes b) { return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)}; }
inline Lanes Multiply(Lanes a, Lanes b) { return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
inline Lanes Divide(Lanes a, Lanes b) { return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)}; }
inline Lanes Fused(Lanes a, Lanes b, Lanes c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
inline Lanes Max(Lanes a, Lanes b) { return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)}; }
inline Lanes Rounded(Lanes v) {
  constexpr int kToEven = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(v.low, kToEven), _mm256_round_ps(v.high, kToEven)};
}
inline Truth AtLeast(Lanes a, Lanes b) {
  return {_mm256_cmp_ps(a.low, b.low, _CMP_GE_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_GE_OQ)};
}
inline Truth Unordered(Lanes a, Lanes b) {
  return {_mm256_cmp_ps(a.low, b.low, _CMP_UNORD_Q), _mm256_cmp_ps(a.high, b.high, _CMP_UNORD_Q)};
}
inline Truth Never() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline Truth Either(Truth a, Truth b) { return {_mm256_or_ps(a.low, b.low), _mm256_or_ps(a.high, b.high)}; }
inline __m256 EightFromBits(uint32_t bits) {
  const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits)), each), each));
}
inline Truth FromBits(uint32_t bits) { return {EightFromBits(bits), EightFromBits(bits >> 8)}; }
inline uint32_t Bits(Truth truth) {
  return static_cast<uint32_t>(_mm256_movemask_ps(truth.low)) | static_cast<uint32_t>(_mm256_movemask_ps(truth.high)) << 8;
}
inline Lanes Choose(Truth truth, Lanes yes, Lanes no) {
  return {_mm256_blendv_ps(no.low, yes.low, truth.low), _mm256_blendv_ps(no.high, yes.high, truth.high)};
}
inline Lanes ZeroUnless(Lanes v, Truth truth) { return {_mm256_and_ps(v.low, truth.low), _mm256_and_ps(v.high, truth.high)}; }
inline __m256 AddExponent(__m256 v, __m256 shifted) {
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(v), _mm256_slli_epi32(_mm256_castps_si256(shifted), 23)));
}
inline Lanes AddExponent(Lanes v, Lanes shifted) { return {AddExponent(v.low, shifted.low), AddExponent(v.high, shifted.high)}; }
inline __m256 PowerOfTwo(__m256 whole) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(whole), _mm256_set1_epi32(127)), 23));
}
inline Lanes PowerOfTwo(Lanes whole) { return {PowerOfTwo(whole.low), PowerOfTwo(whole.high)}; }
inline float ReduceMax(Lanes v) { return MaxOfEight(_mm256_max_ps(v.low, v.high)); }
inline float ReduceAdd(Lanes v) { return SumOfEight(_mm256_add_ps(v.low, v.high)); }
