// What sets of 256-bit vectors include inside their namespace: half of a panel's rows is one vector of each step. The set has defined
// kSubtractsWide, kTileTokens, TileVectors and Dot; kernel-body.h says what they are.

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
Ints SetInts(int32_t value) { return _mm256_set1_epi32(value); }

Floats ToFloats(Ints v) { return _mm256_cvtepi32_ps(v); }
Floats SetFloats(float value) { return _mm256_set1_ps(value); }
Floats LoadFloats(const float* from) { return _mm256_loadu_ps(from); }
void StoreFloats(Floats v, float* to) { _mm256_storeu_ps(to, v); }
Floats Multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
Floats Plus(Floats a, Floats b) { return _mm256_add_ps(a, b); }
Floats Added(Floats a, Floats b, Floats sum) { return _mm256_fmadd_ps(a, b, sum); }
Floats Subtracted(Floats a, Floats b, Floats sum) { return _mm256_fnmadd_ps(a, b, sum); }
__m128i LoadRow(const uint8_t* from) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)); }
Floats WidenHalves(const uint8_t* from) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))); }
Floats RoundedToHalf(Floats x) { return _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)); }
Floats WidenUpper(const uint8_t* from) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))), 16));
}
Floats WidenUnsigned(const uint8_t* from) { return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(LoadRow(from))); }
Floats WidenSigned(const uint8_t* from) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(LoadRow(from))); }

#include "products/kernel-body.h"

int32_t SumOf(__m256i v) {
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xB1)));
}

float LargestOf(__m256 v) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

// One block of one token -> a column of the group. As ggml: by 127 / largest, to even, and the scale in 16 bits.
void RoundBlock(const float* x, const Format& format, int tokens, int32_t* column) {
  const __m256 no_sign = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
  __m256 parts[4], sizes = _mm256_setzero_ps();
  for (int i = 0; i < 4; ++i) {
    parts[i] = _mm256_loadu_ps(x + 8 * i);
    sizes = _mm256_max_ps(sizes, _mm256_and_ps(parts[i], no_sign));
  }
  const float largest = LargestOf(sizes);
  const __m256 inverse = _mm256_set1_ps(largest != 0 ? 127.0f / largest : 0.0f);
  __m256i rounded[4];
  for (int i = 0; i < 4; ++i) rounded[i] = _mm256_cvtps_epi32(_mm256_mul_ps(parts[i], inverse));
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(rounded[0], rounded[1]), _mm256_packs_epi32(rounded[2], rounded[3]));
  alignas(32) int32_t steps[kSteps];
  _mm256_store_si256(reinterpret_cast<__m256i*>(steps),
                     _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
  for (int64_t step = 0; step < kSteps; ++step) column[step * tokens] = steps[step];
  const float scale = _cvtsh_ss(_cvtss_sh(largest / 127.0f, _MM_FROUND_TO_NEAREST_INT));
  StoreTerms(scale, SumOf(_mm256_add_epi32(rounded[0], rounded[1])), SumOf(_mm256_add_epi32(rounded[2], rounded[3])), format,
             tokens, column);
}

