// Included by sets of 256-bit vectors inside their namespace. Half of a panel's rows are one vector of each step. The set has defined
// kSubtractsWide, kTileTokens, TileVectors and Dot, which kernel-body.h explains.

using Bytes = __m256i;
using Ints = __m256i;
using Floats = __m256;
constexpr int kLanes = 8;

Bytes LoadBytes(const uint8_t* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
template <int kMask>
Bytes LowBits(Bytes v) { return _mm256_and_si256(v, _mm256_set1_epi8(kMask)); }
template <int kBits>
Bytes Shifted(Bytes v) { return _mm256_srli_epi16(v, kBits); }
template <int kBits>
Bytes ShiftedLeft(Bytes v) { return _mm256_slli_epi16(v, kBits); }
Bytes Joined(Bytes a, Bytes b) { return _mm256_or_si256(a, b); }
Bytes HighHalves(Bytes v) { return LowBits<15>(Shifted<4>(v)); }
Ints SetInts(int32_t value) { return _mm256_set1_epi32(value); }
template <int kStep, int kToken, int kTokens>
Ints StepOf(const int32_t* group) { return SetInts(group[kStep * kTokens + kToken]); }

Floats ToFloats(Ints v) { return _mm256_cvtepi32_ps(v); }
Floats SetFloats(float value) { return _mm256_set1_ps(value); }
template <int kPlace>
Floats ValueAt(const float* column) { return SetFloats(column[kPlace]); }
Floats LoadFloats(const float* from) { return _mm256_loadu_ps(from); }
void StoreFloats(Floats v, float* to) { _mm256_storeu_ps(to, v); }
Floats Multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
Floats Plus(Floats a, Floats b) { return _mm256_add_ps(a, b); }
Floats Added(Floats a, Floats b, Floats sum) { return _mm256_fmadd_ps(a, b, sum); }
Floats Subtracted(Floats a, Floats b, Floats sum) { return _mm256_fnmadd_ps(a, b, sum); }
Bytes LookedUp(Bytes bytes, const uint8_t* numbers) {
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(numbers))), bytes);
}
__m128i LoadRow(const uint8_t* from) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)); }
Floats WidenHalves(const uint8_t* from) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))); }
Floats RoundedToHalf(Floats x) { return _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)); }
Floats WidenUpper(const uint8_t* from) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))), 16));
}
Floats WidenUnsigned(const uint8_t* from) { return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(LoadRow(from))); }
Floats WidenSigned(const uint8_t* from) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(LoadRow(from))); }
// Numbers with the smallest exponents are subnormal.
Floats WidenExponents(const uint8_t* from) {
  const __m256i e = _mm256_cvtepu8_epi32(LoadRow(from));
  return _mm256_castsi256_ps(_mm256_max_epi32(_mm256_sub_epi32(_mm256_slli_epi32(e, 23), _mm256_set1_epi32(1 << 23)),
                                              _mm256_add_epi32(_mm256_slli_epi32(e, 21), _mm256_set1_epi32(1 << 21))));
}

#include "kernels/matmul/round-body.h"
#include "kernels/matmul/kernel-body.h"
