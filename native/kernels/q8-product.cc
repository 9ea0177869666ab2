#include "kernels/q8-product.h"

#include <algorithm>

#include "kernels/avx512.h"

#ifdef ONPOLICY_AVX512

namespace onpolicy::training {
namespace {

constexpr int64_t kBlock = 32;               // values that share a scale
constexpr int64_t kSteps = kBlock / 4;       // dot products of four values that make a block
constexpr int64_t kBlocksAtOnce = 64;        // of a panel that stay in the cache while all tokens pass
constexpr int64_t kBlockBytes = 2 + kBlock;  // of Q8_0: a 16-bit scale and the values

// One block of a group of tokens.
struct TokenBlock {
  int32_t values[kSteps][kTokenGroup];  // four 8-bit values each
  int32_t offset[kTokenGroup];          // -128 times the sum of a token's values
  float scale[kTokenGroup];
};

// One block of a panel of outputs.
struct alignas(64) PanelBlock {
  int32_t values[kSteps][kOutputPanel];  // four 8-bit values each, plus 128
  float scale[kOutputPanel];
};

// Transposes one block of up to 16 rows of weights so that a vector holds the same four values of each row. Rows past `count` are 0.
ONPOLICY_AVX512 void Pack(const uint8_t* weight, int64_t row_bytes, int64_t count, PanelBlock* out) {
  alignas(32) uint16_t scales[kOutputPanel] = {};
  const __m256i none = _mm256_setzero_si256();
  __m256i rows[kOutputPanel];
  for (int64_t row = 0; row < kOutputPanel; ++row) {
    const uint8_t* block = weight + row * row_bytes;
    rows[row] = row < count ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + 2)) : none;
    if (row < count) __builtin_memcpy(&scales[row], block, 2);
  }
  const __m512i to_unsigned = _mm512_set1_epi8(static_cast<char>(0x80));
  __m512i half[2][4];  // rows 0-7 and 8-15; vector i: step i and step i + 4 of each
  for (int side = 0; side < 2; ++side) {
    const __m256i* part = rows + 8 * side;
    __m512i pair[4];
    for (int i = 0; i < 4; ++i) pair[i] = _mm512_inserti64x4(_mm512_castsi256_si512(part[i]), part[i + 4], 1);
    const __m512i low01 = _mm512_unpacklo_epi32(pair[0], pair[1]), high01 = _mm512_unpackhi_epi32(pair[0], pair[1]);
    const __m512i low23 = _mm512_unpacklo_epi32(pair[2], pair[3]), high23 = _mm512_unpackhi_epi32(pair[2], pair[3]);
    half[side][0] = _mm512_unpacklo_epi64(low01, low23);
    half[side][1] = _mm512_unpackhi_epi64(low01, low23);
    half[side][2] = _mm512_unpacklo_epi64(high01, high23);
    half[side][3] = _mm512_unpackhi_epi64(high01, high23);
  }
  for (int i = 0; i < 4; ++i) {
    const __m512i first = _mm512_shuffle_i32x4(half[0][i], half[1][i], _MM_SHUFFLE(2, 0, 2, 0));
    const __m512i second = _mm512_shuffle_i32x4(half[0][i], half[1][i], _MM_SHUFFLE(3, 1, 3, 1));
    _mm512_store_si512(out->values[i], _mm512_xor_si512(first, to_unsigned));
    _mm512_store_si512(out->values[i + 4], _mm512_xor_si512(second, to_unsigned));
  }
  _mm512_store_ps(out->scale, _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(scales))));
}

// y (+)= panel x group over `blocks` blocks. y: one column of `stride` per token; `tokens` of the group exist.
ONPOLICY_AVX512 void Multiply(float* y, int64_t stride, const PanelBlock* panel, const TokenBlock* group, int64_t blocks,
                            int64_t tokens, __mmask16 outputs, bool adds) {
  __m512 sums[kTokenGroup];
#pragma GCC unroll 16
  for (int64_t t = 0; t < kTokenGroup; ++t)
    sums[t] = adds && t < tokens ? _mm512_maskz_loadu_ps(outputs, y + t * stride) : _mm512_setzero_ps();
  for (int64_t b = 0; b < blocks; ++b, ++panel, ++group) {
    __m512i dots[kTokenGroup];
#pragma GCC unroll 16
    for (int64_t t = 0; t < kTokenGroup; ++t) dots[t] = _mm512_set1_epi32(group->offset[t]);
#pragma GCC unroll 8
    for (int64_t step = 0; step < kSteps; ++step) {
      const __m512i weights = _mm512_load_si512(panel->values[step]);
#pragma GCC unroll 16
      for (int64_t t = 0; t < kTokenGroup; ++t)
        dots[t] = _mm512_dpbusd_epi32(dots[t], weights, _mm512_set1_epi32(group->values[step][t]));
    }
    const __m512 scale = _mm512_load_ps(panel->scale);
#pragma GCC unroll 16
    for (int64_t t = 0; t < kTokenGroup; ++t)
      sums[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[t]), _mm512_mul_ps(scale, _mm512_set1_ps(group->scale[t])),
                                sums[t]);
  }
#pragma GCC unroll 16
  for (int64_t t = 0; t < kTokenGroup; ++t)
    if (t < tokens) _mm512_mask_storeu_ps(y + t * stride, outputs, sums[t]);
}

// One block of one token.
ONPOLICY_AVX512 void Round(const float* x, TokenBlock* out, int64_t token) {
  const __m512 low = _mm512_loadu_ps(x), high = _mm512_loadu_ps(x + 16);
  const float largest = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(low), _mm512_abs_ps(high)));
  const float scale = largest / 127.0f;
  const __m512 inverse = _mm512_set1_ps(largest != 0 ? 127.0f / largest : 0.0f);
  const __m512i a = _mm512_cvtps_epi32(_mm512_mul_ps(low, inverse));
  const __m512i b = _mm512_cvtps_epi32(_mm512_mul_ps(high, inverse));
  alignas(16) int32_t values[kSteps];
  _mm_store_si128(reinterpret_cast<__m128i*>(values), _mm512_cvtepi32_epi8(a));
  _mm_store_si128(reinterpret_cast<__m128i*>(values + 4), _mm512_cvtepi32_epi8(b));
  for (int64_t step = 0; step < kSteps; ++step) out->values[step][token] = values[step];
  out->offset[token] = -128 * _mm512_reduce_add_epi32(_mm512_add_epi32(a, b));
  out->scale[token] = _cvtsh_ss(_cvtss_sh(scale, _MM_FROUND_TO_NEAREST_INT));
}

}  // namespace

size_t RoundedBytes(int64_t size, int64_t tokens) {
  const int64_t groups = (tokens + kTokenGroup - 1) / kTokenGroup;
  return static_cast<size_t>(groups * (size / kBlock)) * sizeof(TokenBlock);
}

void RoundTokens(const float* x, int64_t size, int64_t tokens, int64_t first_group, int64_t last_group,
                 void* rounded) {
  const int64_t blocks = size / kBlock;
  for (int64_t g = first_group; g < last_group; ++g) {
    TokenBlock* group = static_cast<TokenBlock*>(rounded) + g * blocks;
    for (int64_t t = 0; t < kTokenGroup; ++t) {
      const int64_t token = std::min(g * kTokenGroup + t, tokens - 1);  // places past the last token are not stored
      for (int64_t b = 0; b < blocks; ++b) Round(x + token * size + b * kBlock, group + b, t);
    }
  }
}

void Q8Product(float* y, const void* weight, const void* rounded, int64_t size, int64_t outputs, int64_t tokens,
               int64_t first_panel, int64_t last_panel) {
  const int64_t blocks = size / kBlock, row_bytes = blocks * kBlockBytes;
  const int64_t groups = (tokens + kTokenGroup - 1) / kTokenGroup;
  PanelBlock panel[kBlocksAtOnce];
  for (int64_t start = 0; start < blocks; start += kBlocksAtOnce) {
    const int64_t count = std::min(kBlocksAtOnce, blocks - start);
    for (int64_t p = first_panel; p < last_panel; ++p) {
      const int64_t first_row = p * kOutputPanel, rows = std::min(kOutputPanel, outputs - first_row);
      const auto* source = static_cast<const uint8_t*>(weight) + first_row * row_bytes + start * kBlockBytes;
      for (int64_t b = 0; b < count; ++b) Pack(source + b * kBlockBytes, row_bytes, rows, panel + b);
      const auto mask = static_cast<__mmask16>((1u << rows) - 1);
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t first = g * kTokenGroup;
        Multiply(y + first * outputs + first_row, outputs, panel,
                 static_cast<const TokenBlock*>(rounded) + g * blocks + start, count,
                 std::min(kTokenGroup, tokens - first), mask, start > 0);
      }
    }
  }
}

}  // namespace onpolicy::training

#else

namespace onpolicy::training {

size_t RoundedBytes(int64_t, int64_t) { return 0; }
void RoundTokens(const float*, int64_t, int64_t, int64_t, int64_t, void*) {}
void Q8Product(float*, const void*, const void*, int64_t, int64_t, int64_t, int64_t, int64_t) {}

}  // namespace onpolicy::training

#endif
