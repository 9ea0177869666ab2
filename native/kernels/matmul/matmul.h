// Packed weights, activations -> matmuls: y = W x, by one set of kernels. Threads share a matmul by blocks to round, then by
// panels to multiply. The order of a sum depends only on the row's width, not on other tokens, threads or instructions.
#pragma once
#include "kernels/matmul/kernels.h"

namespace onpolicy::matmul {

struct PackedMatrix {
  const Format* format;
  const uint8_t* panels;
  int64_t width, rows;

  int64_t blocks() const { return width / kBlock; }
  int64_t panel_count() const { return (rows + kPanel - 1) / kPanel; }
};

// Columns of 32-bit floats, `stride` bytes apart.
struct Activations {
  const void* x;
  size_t stride;
  int64_t tokens;
};

// Tokens divided into the fewest groups of about equal size.
struct Groups {
  int64_t tokens, count;
  Groups(const Kernels& kernels, int64_t all) : tokens(all), count((all + kernels.most_tokens - 1) / kernels.most_tokens) {}
  int64_t First(int64_t group) const { return tokens * group / count; }
};

// Returns the bytes of a matmul's rounded activations, which begin at a multiple of 64 bytes.
size_t RoundedBytes(const Format& format, int64_t width, int64_t tokens);

// Returns the bytes of a packed matrix.
size_t PackedBytes(const Format& format, int64_t width, int64_t rows);

// Packs or unpacks the panels [first, last) of a matrix; `rows` is its first row in ggml's layout.
void PackPanels(const PackedMatrix& matrix, const void* rows, int64_t first, int64_t last, uint8_t* packed);
void UnpackPanels(const PackedMatrix& matrix, int64_t first, int64_t last, void* rows);

// Rounds the blocks [first, last) of all tokens.
void RoundBlocks(const Kernels& kernels, const Format& format, int64_t width, const Activations& activations, int64_t first,
                 int64_t last, int32_t* rounded);

// One column of (rows) per token, `stride` floats apart.
struct Output {
  float* y;
  int64_t stride;
  const int32_t* places = nullptr;  // (tokens) columns; null: in order
};

// Multiplies the panels [first, last).
void MultiplyPanels(const Kernels& kernels, const PackedMatrix& matrix, const int32_t* rounded, int64_t tokens,
                    int64_t first, int64_t last, const Output& output);

}  // namespace onpolicy::matmul
