// Packed matrices of experts, the experts of each token -> products of each token with its experts. Rows of activations are sorted by
// expert; then each expert multiplies its rows as one batch.
#pragma once
#include "kernels/matmul/matmul.h"

namespace onpolicy::matmul {

// Row i of y belongs to token i / used.
struct ExpertMatmul {
  PackedMatrix first;  // matrix of the first expert; the others follow
  int64_t experts, tokens, used;
  const char* ids;     // (tokens, used) experts, of 32 bits
  size_t ids_token;    // bytes from token to token
  const char* x;       // (tokens, x_rows, width); x_rows: 1, if all experts of a token have the same activations, or `used`
  size_t x_token, x_row;
  int64_t x_rows;
  float* y;            // (tokens, used, rows)
};

// Divides an ExpertMatmul among threads. Each thread keeps its own order of rows in `work`, which begins at a multiple of 64 bytes.
class ExpertPlan {
 public:
  ExpertPlan(const Kernels& kernels, const ExpertMatmul& matmul, int64_t threads);

  size_t work_bytes() const;

  // Orders the rows and rounds a thread's share of them. All threads must wait for each other afterwards.
  void Round(int64_t thread, uint8_t* work) const;

  // Multiplies the pieces that `next()` returns until none are left. All threads count the pieces together, from 0 on.
  template <typename Next>
  void Multiply(int64_t thread, uint8_t* work, Next&& next) const {
    const Order order = OrderOf(thread, work);
    int64_t expert = 0, before = 0;  // pieces of the experts before this one
    for (int64_t piece = next();; piece = next()) {
      while (expert < matmul_.experts && piece >= before + Pieces(order, expert)) before += Pieces(order, expert++);
      if (expert == matmul_.experts) return;
      MultiplyPiece(order, expert, piece - before, work);
    }
  }

 private:
  // Rows by expert: those of expert e are rows[first[e]] to rows[first[e + 1]].
  struct Order {
    int32_t* first;
    int32_t* rows;
    int64_t groups;  // groups of rows, over all experts
    int64_t shared;  // groups of one row that are read from the rounded tokens, as several experts have the same; then all of one row

    int64_t count(int64_t expert) const { return first[expert + 1] - first[expert]; }
  };

  Order OrderOf(int64_t thread, uint8_t* work) const;
  void Sort(int32_t* first, int32_t* rows) const;
  int64_t Pieces(const Order& order, int64_t expert) const;
  void MultiplyPiece(const Order& order, int64_t expert, int64_t piece, uint8_t* work) const;

  // Returns the place of a rounded row: rows in their order, then the rounded tokens.
  int32_t* Rounded(uint8_t* work, int64_t row) const;
  const float* Activations(int32_t row) const;

  const Kernels& kernels_;
  const ExpertMatmul matmul_;
  const int64_t threads_, rows_;
  const size_t order_bytes_;
};

}  // namespace onpolicy::matmul
