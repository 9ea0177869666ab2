// A set of vector instructions -> the inner loops of matmuls. Every set gives the same bits, for any number of tokens.
#pragma once
#include <array>

#include "kernels/matmul/types.h"

#if defined(__x86_64__) && (defined(__linux__) || defined(__MINGW32__))
#define ONPOLICY_X86_PRODUCTS
#define ONPOLICY_PRODUCTS
#elif defined(__aarch64__) && defined(__linux__)
#define ONPOLICY_ARM_PRODUCTS
#define ONPOLICY_PRODUCTS
#endif

namespace onpolicy::matmul {

// Rounded activations of a group of tokens: for each block `RowsOf` rows of 32-bit numbers, with one number per token. They are the
// steps of four signed bytes, the scale (float), then by kind of terms
//   kOffset   -offset * sum(x)
//   kHalves   -offset * sum(x) of the first half, of the second
//   kMinimum  scale * sum(x) (float)
// For kFloats there is one row per value (float), rounded to the type of the weights.
constexpr int64_t kScaleRow = kSteps, kSumRow = kSteps + 1;
constexpr int64_t RowsOf(Terms terms) {
  if (terms == Terms::kFloats) return kBlock;
  return terms == Terms::kHalves ? kSteps + 3 : kSteps + 2;
}

constexpr int kMostTokens = 8;  // of a group
constexpr int64_t kLineBytes = 64;  // of a cache

// A panel, or two consecutive panels, and a group of tokens.
struct TileInput {
  const uint8_t* panel;
  int64_t panel_bytes;
  int64_t blocks;
  const int32_t* group;
  float* y;        // (tokens, rows of the panels) sums
  int64_t stride;  // floats from token to token
  const uint8_t* ahead;  // `ahead_lines` lines from here on are prefetched with each block
  int64_t ahead_lines;
};
using RunTileFunction = void(const TileInput& input);

// Blocks of a group of tokens that are rounded together. Number i is block first + i / tokens of token i % tokens.
struct RoundedBlocks {
  const float* const* x;  // (tokens)
  int64_t first;
  int tokens, blocks;
  int32_t* rows;  // of the first block
  int64_t block_numbers;

  int count() const { return tokens * blocks; }
  const float* Values(int i) const { return x[i % tokens] + (first + i / tokens) * kBlock; }
};

struct Kernels {
  const char* name;
  bool (*is_supported)();
  // Rounds the blocks [first, last) of a group of tokens to 8 bits as ggml does for Q8_0. x: (tokens) activations of each.
  void (*round)(const float* const* x, int tokens, int64_t first, int64_t last, const Format& format, int32_t* group);
  int most_tokens;  // of a group
  using Tiles = std::array<std::array<RunTileFunction*, kMostTokens>, kFormatCount>;  // by type, and tokens - 1
  Tiles tiles;
  Tiles wide_tiles{};  // for two panels; null if the set has none
};

// The sets that this build contains, the fastest first.
#if defined(ONPOLICY_X86_PRODUCTS)
extern const Kernels kAvx512Kernels, kAvxVnniKernels, kAvx2Kernels;
inline constexpr std::array kAllKernels = {&kAvx512Kernels, &kAvxVnniKernels, &kAvx2Kernels};
#elif defined(ONPOLICY_ARM_PRODUCTS)
extern const Kernels kI8mmKernels, kDotprodKernels;
inline constexpr std::array kAllKernels = {&kI8mmKernels, &kDotprodKernels};
#else
inline constexpr std::array<const Kernels*, 0> kAllKernels = {};
#endif

// Returns the fastest set of this processor, or null if there is none.
const Kernels* BestKernels();

}  // namespace onpolicy::matmul
