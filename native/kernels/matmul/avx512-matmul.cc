// Kernels for AVX-512 with 8-bit dot products: a step of a panel is one register.
#include "base/target.h"
#include "kernels/matmul/kernels.h"

#include <type_traits>
#include <utility>

#ifdef ONPOLICY_X86_PRODUCTS
#include <immintrin.h>

ONPOLICY_BEGIN_TARGET("f16c,fma,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")

namespace onpolicy::matmul {
namespace {

using Bytes = __m512i;
using Ints = __m512i;
using Floats = __m512;
constexpr int kLanes = 16;
constexpr bool kSubtractsWide = false;
constexpr int kTileTokens = kMostTokens;
constexpr int TileVectors(int) { return 1; }

Bytes LoadBytes(const uint8_t* from) { return _mm512_loadu_si512(from); }
template <int kMask>
Bytes LowBits(Bytes v) { return _mm512_and_si512(v, _mm512_set1_epi8(kMask)); }
template <int kBits>
Bytes Shifted(Bytes v) { return _mm512_srli_epi16(v, kBits); }
template <int kBits>
Bytes ShiftedLeft(Bytes v) { return _mm512_slli_epi16(v, kBits); }
Bytes Joined(Bytes a, Bytes b) { return _mm512_or_si512(a, b); }
Bytes HighHalves(Bytes v) { return LowBits<15>(Shifted<4>(v)); }
Ints SetInts(int32_t value) { return _mm512_set1_epi32(value); }
template <int kStep, int kToken, int kTokens>
Ints StepOf(const int32_t* group) { return SetInts(group[kStep * kTokens + kToken]); }
template <int, int>
void Dot(Ints& dots, Ints&, Bytes weights, Ints x) { dots = _mm512_dpbusd_epi32(dots, weights, x); }
Floats ToFloats(Ints v) { return _mm512_cvtepi32_ps(v); }
Floats SetFloats(float value) { return _mm512_set1_ps(value); }
template <int kPlace>
Floats ValueAt(const float* column) { return SetFloats(column[kPlace]); }
Floats LoadFloats(const float* from) { return _mm512_loadu_ps(from); }
void StoreFloats(Floats v, float* to) { _mm512_storeu_ps(to, v); }
Floats Multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
Floats Plus(Floats a, Floats b) { return _mm512_add_ps(a, b); }
Floats Added(Floats a, Floats b, Floats sum) { return _mm512_fmadd_ps(a, b, sum); }
Floats Subtracted(Floats a, Floats b, Floats sum) { return _mm512_fnmadd_ps(a, b, sum); }
Bytes LookedUp(Bytes bytes, const uint8_t* numbers) {
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(numbers))), bytes);
}
__m128i LoadRow(const uint8_t* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
Floats WidenHalves(const uint8_t* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
Floats RoundedToHalf(Floats x) {
  return _mm512_cvtph_ps(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
Floats WidenUpper(const uint8_t* from) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))), 16));
}
Floats WidenUnsigned(const uint8_t* from) { return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(LoadRow(from))); }
Floats WidenSigned(const uint8_t* from) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(LoadRow(from))); }
// Numbers with the smallest exponents are subnormal.
Floats WidenExponents(const uint8_t* from) {
  const __m512i e = _mm512_cvtepu8_epi32(LoadRow(from));
  return _mm512_castsi512_ps(_mm512_max_epi32(_mm512_sub_epi32(_mm512_slli_epi32(e, 23), _mm512_set1_epi32(1 << 23)),
                                              _mm512_add_epi32(_mm512_slli_epi32(e, 21), _mm512_set1_epi32(1 << 21))));
}

#include "kernels/matmul/round-body.h"
#include "kernels/matmul/kernel-body.h"

// Computes a tile of two panels. Each value of a token is read once for both.
template <typename Type, int kTokens>
void RunWideTile(const TileInput& input) {
  if constexpr (Type::kTerms == Terms::kFloats) RunFloats<Type, 2, kTokens>(input);
  else RunRows<Type, 2, kTokens>(input, 0);
}

template <typename Type, int... kIndices>
constexpr std::array<RunTileFunction*, kMostTokens> WideTilesOf(std::integer_sequence<int, kIndices...>) {
  return {RunWideTile<Type, kIndices + 1>...};
}
#define ONPOLICY_WIDE_TILES(name) WideTilesOf<name>(std::make_integer_sequence<int, kTileTokens>()),

bool IsSupported() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni");
}

}  // namespace

constinit const Kernels kAvx512Kernels = {"avx512", IsSupported, Round, kTileTokens, {ONPOLICY_PRODUCT_FORMATS(ONPOLICY_TILES)},
                              {ONPOLICY_PRODUCT_FORMATS(ONPOLICY_WIDE_TILES)}};

}  // namespace onpolicy::matmul

ONPOLICY_END_TARGET

#endif
