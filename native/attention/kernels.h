// A set of vector instructions -> the inner loops of attention. Every set gives the same bits, for any number of rows.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#if defined(__x86_64__) && defined(__linux__)
#define ONPOLICY_X86_ATTENTION
#endif

namespace onpolicy::attention {

constexpr int kLanes = 16;        // numbers that are computed together: an accumulator has as many sums
constexpr int kBlockCells = 64;   // whose scores are turned into weights together

enum class CellType { kF16, kQ8_0, kF32 };
constexpr size_t kCellTypes = 3;

// Query rows and cells of one block. Rows are ordered by token, then by head.
struct Block {
  const float* const* q;  // (rows), each of k_vectors * kLanes numbers
  int rows, heads;        // heads: rows of one token
  const uint8_t *k, *v;   // at cell 0
  size_t k_stride, v_stride;
  const int32_t* index;   // (kBlockCells) cells
  int first, end;         // the cells that any row sees are at [first, end) of `index`
  const float* mask;      // (tokens, kBlockCells), added to scores; null: all rows see all of [first, end)
  float scale;            // of scores
  float cap;              // scores s are then cap * tanh(s / cap); 0: they stay
  int k_vectors, v_vectors;
  int k_fetched, v_fetched;  // bytes of a cell, from its keys and its values on, that are fetched into the cache ahead
  // What is kept between blocks.
  float* scores;   // (rows, kBlockCells)
  float* largest;  // (rows) score
  float* sums;     // (rows, kLanes) of weights
  float* y;        // (rows, v_vectors * kLanes) sums of weighted values
};

// Vectors of some tokens: `stride` numbers apart.
struct Rows {
  const float* data;
  size_t stride;
  int64_t tokens;
};

struct Kernels {
  const char* name;
  bool (*is_supported)();
  // Bit i: whether mask[i] lets a row see cell i. Of kBlockCells 16-bit floats.
  uint64_t (*visible)(const uint16_t* mask);
  float (*sum)(const float* lanes);  // of kLanes
  std::array<void (*)(const Block& block), kCellTypes> attend;
  // Matmuls with the factors of an adapter, each token by itself.
  // y[token * y_stride + row] = factor row . x of the token; rows: `count` of them, each of `size` numbers, a multiple of kLanes.
  void (*narrow)(const float* factor, int64_t size, int count, Rows x, float* y, size_t y_stride);
  // y[token * y_stride + i] = sum over the numbers r of h of h[r] * factor[r * factor_stride + i], for kLanes outputs i.
  void (*widen)(const float* factor, size_t factor_stride, int64_t rank, Rows h, float* y, size_t y_stride);
};

// The fastest set of this processor; null when there is none.
const Kernels* BestKernels();

// The sets that this build contains, the fastest first; null where one is for another architecture.
extern const Kernels* const kAvx512Kernels;
extern const Kernels* const kAvx2Kernels;
inline const std::array kAllKernels = {kAvx512Kernels, kAvx2Kernels};

}  // namespace onpolicy::attention
