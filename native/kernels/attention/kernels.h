// A set of vector instructions -> the inner loops of attention. Every set gives the same bits, for any number of rows.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#if defined(__x86_64__) && (defined(__linux__) || defined(__MINGW32__))
#define ONPOLICY_X86_ATTENTION
#define ONPOLICY_ATTENTION
#elif defined(__aarch64__) && defined(__linux__)
#define ONPOLICY_ARM_ATTENTION
#define ONPOLICY_ATTENTION
#endif

namespace onpolicy::attention {

constexpr int kLanes = 16;        // numbers that are computed together; the number of sums of an accumulator
constexpr int kBlockCells = 64;   // cells whose scores are turned into weights together

constexpr int kLeastManyRows = 16;  // of a block, from which on its cells are converted to floats first

enum class CellType { kF16, kQ8_0, kF32 };
constexpr size_t kCellTypes = 3;

// Cells that are fetched into the cache while a block is computed.
struct Ahead {
  const int32_t* cells;  // (count)
  int count;
  const uint8_t *k, *v;  // at cell 0
};

// Query rows and cells of one block. Rows are ordered by token, then by head.
struct Block {
  const float* const* q;  // (rows), each of k_vectors * kLanes numbers
  int rows, heads;        // heads: rows of one token
  const uint8_t *k, *v;   // at cell 0
  size_t k_stride, v_stride;
  const int32_t* index;   // (kBlockCells) cells
  int first, end;         // rows see only cells at [first, end) of `index`
  const uint64_t* seen;   // (tokens) bits of the cells that a token sees; null: all rows see all of [first, end)
  float scale;            // of scores
  float cap;              // scores s become cap * tanh(s / cap); 0: unchanged
  int k_vectors, v_vectors;
  Ahead ahead;
  float *keys, *values;    // room for all cells of the block as floats, if there are kLeastManyRows rows
  // State that is kept between blocks.
  float* scores;   // (rows, kBlockCells)
  float* largest;  // (rows) score
  float* sums;     // (rows, kLanes) of weights
  float* y;        // (rows, v_vectors * kLanes) sums of weighted values
};

// Vectors of some tokens, `stride` numbers apart.
struct Rows {
  const float* data;
  size_t stride;
  int64_t tokens;
};

// One or more numbers of each token, `stride` numbers apart.
struct Tokens {
  const float* data;
  size_t stride;
};

// Rows of a state, which tokens change one after the other by the gated delta rule. For a row s: s *= e^gate; s += k * beta * (v - s . k);
// then y = scale * s . q.
struct DeltaRows {
  int size, rows;     // numbers of a row: 16, 32, 64 or 128
  int tokens;         // kDeltaTokens at most
  int64_t after;      // number of tokens that follow these
  Tokens q, k, v;     // (size), (size), (rows) numbers of a token
  Tokens gates, beta;
  bool has_gates;     // each number of a row has a gate, otherwise all share one
  float scale;
  float* factors;     // room for (tokens, size) numbers
  const float* from;  // (rows, size)
  float* to;          // (states, rows, size), `state_stride` apart: states after the last token, after the token before it, ...
  int64_t states;
  size_t state_stride;
  float* y;           // (rows) of a token
  size_t y_token;
};
constexpr int kDeltaTokens = 32;  // tokens whose keys and queries stay in the cache from row to row

// y = the weighted sum of `taps` neighbouring numbers of a channel.
struct Convolution {
  const float* x;        // of a channel (tokens + taps - 1), `x_channel` numbers apart
  size_t x_channel;
  const float* weights;  // (channels, taps)
  int taps, channels;    // channels: kLanes at most
  int64_t tokens;
  float* y;              // of a token (channels), `y_token` numbers apart
  size_t y_token;
};
constexpr int kMostTaps = 16;

struct Kernels {
  const char* name;
  bool (*is_supported)();
  // Returns bits of a mask of kBlockCells 16-bit floats: bit i is 1 if the row sees cell i.
  uint64_t (*visible)(const uint16_t* mask);
  float (*sum)(const float* lanes);  // of kLanes
  std::array<void (*)(const Block& block), kCellTypes> attend;
  // Matmuls with the factors of an adapter, separately for each token.
  // y[token * y_stride + row] = factor row . x of the token; rows: `count` of them, each of `size` numbers, a multiple of kLanes.
  void (*narrow)(const float* factor, int64_t size, int count, Rows x, float* y, size_t y_stride);
  // y[token * y_stride + i] = sum over the numbers r of h of h[r] * factor[r * factor_stride + i], for kLanes outputs i.
  void (*widen)(const float* factor, size_t factor_stride, int64_t rank, Rows h, float* y, size_t y_stride);
  void (*delta)(const DeltaRows& rows);
  void (*convolve)(const Convolution& convolution);
  // y[i] += x[i] * weights[i], in one rounding.
  void (*add_weighted)(const float* x, const float* weights, int64_t count, float* y);
};

// The sets that this build contains, the fastest first.
#if defined(ONPOLICY_X86_ATTENTION)
extern const Kernels kAvx512Kernels, kAvx2Kernels;
inline constexpr std::array kAllKernels = {&kAvx512Kernels, &kAvx2Kernels};
#elif defined(ONPOLICY_ARM_ATTENTION)
extern const Kernels kNeonKernels;
inline constexpr std::array kAllKernels = {&kNeonKernels};
#else
inline constexpr std::array<const Kernels*, 0> kAllKernels = {};
#endif

// Returns the fastest set of this processor, or null if there is none.
const Kernels* BestKernels();

}  // namespace onpolicy::attention
