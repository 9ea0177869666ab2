#include "kernels/f32-matmul.h"

#include <algorithm>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>

#include "base/target.h"

ONPOLICY_BEGIN_TARGET("f16c,fma,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")

namespace onpolicy::training {
namespace {

constexpr int64_t kFloats = 16;
constexpr int64_t kColumns = 12;        // columns that one pass over a panel computes
constexpr int64_t kPanel = 2 * kFloats;  // outputs that one pass computes
constexpr int64_t kSizeAtOnce = 256;    // rows of a panel that stay in the cache while all columns are multiplied

#include "kernels/attention/avx512-transpose.h"

// a, (count, outputs) -> `panel`: for each of `count`, 32 outputs side by side. Places past `outputs` are 0.
void Pack(StridedMatrix a, int64_t count, int64_t outputs, float* panel) {
  if (a.outer == 1) {
    const auto mask = static_cast<__mmask32>(outputs >= kPanel ? ~0ull : (1ull << outputs) - 1);
    for (int64_t i = 0; i < count; ++i, panel += kPanel) {
      const float* from = a.data + i * a.inner;
      _mm512_storeu_ps(panel, _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), from));
      _mm512_storeu_ps(panel + kFloats, _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> kFloats), from + kFloats));
    }
    return;
  }
  for (int64_t half = 0; half < kPanel; half += kFloats) {
    int64_t i = 0;
    for (; a.inner == 1 && i + kFloats <= count; i += kFloats) {
      __m512 rows[kFloats];
      for (int64_t j = 0; j < kFloats; ++j)
        rows[j] = half + j < outputs ? _mm512_loadu_ps(a.data + i + (half + j) * a.outer) : _mm512_setzero_ps();
      Transpose(rows);
      for (int64_t j = 0; j < kFloats; ++j) _mm512_storeu_ps(panel + (i + j) * kPanel + half, rows[j]);
    }
    for (; i < count; ++i)
      for (int64_t j = half; j < half + kFloats; ++j)
        panel[i * kPanel + j] = j < outputs ? a.data[i * a.inner + j * a.outer] : 0.0f;
  }
}

// y (+)= panel^T b for `columns` columns of b. `Vectors` vectors of the panel have outputs; `last` masks those of the last one.
template <int Vectors>
void Multiply(float* y, int64_t stride, const float* panel, StridedMatrix b, int64_t count,
                              int64_t columns, __mmask16 last, bool adds) {
  const float* at[kColumns];
  __m512 sums[kColumns][Vectors];
#pragma GCC unroll 16
  for (int64_t c = 0; c < kColumns; ++c) {
    at[c] = b.data + std::min(c, columns - 1) * b.outer;  // columns past the last are not stored
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) sums[c][v] = _mm512_setzero_ps();
  }
  int64_t place = 0;
  for (int64_t i = 0; i < count; ++i, panel += kPanel, place += b.inner) {
    __m512 weights[Vectors];
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) weights[v] = _mm512_loadu_ps(panel + v * kFloats);
#pragma GCC unroll 16
    for (int64_t c = 0; c < kColumns; ++c) {
      const __m512 value = _mm512_set1_ps(at[c][place]);
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) sums[c][v] = _mm512_fmadd_ps(weights[v], value, sums[c][v]);
    }
  }
#pragma GCC unroll 16
  for (int64_t c = 0; c < kColumns; ++c)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) {
      if (c >= columns) continue;
      const __mmask16 mask = v == Vectors - 1 ? last : static_cast<__mmask16>(0xffff);
      float* place_of_sum = y + c * stride + v * kFloats;
      const __m512 before = adds ? _mm512_maskz_loadu_ps(mask, place_of_sum) : _mm512_setzero_ps();
      _mm512_mask_storeu_ps(place_of_sum, mask, _mm512_add_ps(before, sums[c][v]));
    }
}

}  // namespace

void F32Matmul(float* y, StridedMatrix a, StridedMatrix b, int64_t size, int64_t outputs, int64_t first,
                int64_t last) {
  alignas(64) float panel[kSizeAtOnce * kPanel];
  for (int64_t start = 0; start < size; start += kSizeAtOnce) {
    const int64_t count = std::min(kSizeAtOnce, size - start);
    for (int64_t output = 0; output < outputs; output += kPanel) {
      const int64_t some = std::min(kPanel, outputs - output);
      Pack({a.data + start * a.inner + output * a.outer, a.inner, a.outer}, count, some, panel);
      const auto mask = static_cast<__mmask16>((1u << (some > kFloats ? some - kFloats : some)) - 1);
      const auto multiply = some > kFloats ? Multiply<2> : Multiply<1>;
      for (int64_t c = first; c < last; c += kColumns)
        multiply(y + c * outputs + output, outputs, panel,
                 {b.data + start * b.inner + c * b.outer, b.inner, b.outer}, count, std::min(kColumns, last - c),
                 mask, start > 0);
    }
  }
}

ONPOLICY_END_TARGET

bool HasAvx512() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vnni");
  return has;
}

}  // namespace onpolicy::training

#else

namespace onpolicy::training {

bool HasAvx512() { return false; }
void F32Matmul(float*, StridedMatrix, StridedMatrix, int64_t, int64_t, int64_t, int64_t) {}

}  // namespace onpolicy::training

#endif
