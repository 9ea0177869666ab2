#include "engine-assumptions/matmul/experts.h"

#include <algorithm>

namespace onpolicy::matmul {
namespace {

constexpr int64_t kExpertPieces = 16;  // so that threads end at about the same time

}  // namespace

ExpertPlan::ExpertPlan(const Kernels& kernels, const ExpertMatmul& matmul, int64_t threads)
    : kernels_(kernels),
      matmul_(matmul),
      threads_(threads),
      rows_(matmul.tokens * matmul.used),
      order_bytes_(RoundedToVectors(static_cast<size_t>(matmul.experts + 1 + rows_) * sizeof(int32_t))) {}

size_t ExpertPlan::work_bytes() const {
  const int64_t rounded = rows_ + (matmul_.x_rows == 1 ? matmul_.tokens : 0);
  return static_cast<size_t>(threads_) * order_bytes_ + RoundedBytes(*matmul_.first.format, matmul_.first.width, rounded);
}

int32_t* ExpertPlan::Rounded(uint8_t* work, int64_t row) const {
  return reinterpret_cast<int32_t*>(work + static_cast<size_t>(threads_) * order_bytes_ +
                                    RoundedBytes(*matmul_.first.format, matmul_.first.width, row));
}

const float* ExpertPlan::Activations(int32_t row) const {
  const int64_t token = row / matmul_.used, part = row % matmul_.used % matmul_.x_rows;
  return reinterpret_cast<const float*>(matmul_.x + static_cast<size_t>(token) * matmul_.x_token +
                                        static_cast<size_t>(part) * matmul_.x_row);
}

ExpertPlan::Order ExpertPlan::OrderOf(int64_t thread, uint8_t* work) const {
  auto* first = reinterpret_cast<int32_t*>(work + static_cast<size_t>(thread) * order_bytes_);
  Order order{first, first + matmul_.experts + 1, 0, 0};
  int64_t singles = 0;
  for (int64_t expert = 0; expert < matmul_.experts; ++expert) {
    order.groups += Groups(kernels_, order.count(expert)).count;
    singles += order.count(expert) == 1;
  }
  if (matmul_.x_rows == 1 && singles > matmul_.tokens) order.shared = singles;
  return order;
}

void ExpertPlan::Sort(int32_t* first, int32_t* rows) const {
  const auto ids_of = [&](int64_t token) {
    return reinterpret_cast<const int32_t*>(matmul_.ids + static_cast<size_t>(token) * matmul_.ids_token);
  };
  std::fill_n(first, matmul_.experts + 1, 0);
  for (int64_t token = 0; token < matmul_.tokens; ++token)
    for (int64_t i = 0; i < matmul_.used; ++i) ++first[ids_of(token)[i]];
  for (int64_t expert = 1; expert <= matmul_.experts; ++expert) first[expert] += first[expert - 1];
  for (int64_t token = matmul_.tokens - 1; token >= 0; --token)
    for (int64_t i = matmul_.used - 1; i >= 0; --i) rows[--first[ids_of(token)[i]]] = static_cast<int32_t>(token * matmul_.used + i);
}

void ExpertPlan::Round(int64_t thread, uint8_t* work) const {
  auto* first = reinterpret_cast<int32_t*>(work + static_cast<size_t>(thread) * order_bytes_);
  Sort(first, first + matmul_.experts + 1);
  const Order order = OrderOf(thread, work);
  const PackedMatrix& matrix = matmul_.first;
  const int64_t blocks = matrix.blocks();
  // The blocks of all groups, one group after the other, are divided evenly among the threads.
  const int64_t all = (order.groups - order.shared + (order.shared > 0 ? matmul_.tokens : 0)) * blocks;
  int64_t begin = all * thread / threads_, end = all * (thread + 1) / threads_;
  const auto round = [&](const float* const* x, int64_t count, int64_t row) {
    if (begin < blocks && end > 0)
      kernels_.round(x, static_cast<int>(count), std::max<int64_t>(begin, 0), std::min(end, blocks), *matrix.format, Rounded(work, row));
    begin -= blocks;
    end -= blocks;
  };
  const float* x[kMostTokens];
  for (int64_t expert = 0; expert < matmul_.experts && end > 0; ++expert) {
    const Groups groups(kernels_, order.count(expert));
    if (order.shared > 0 && order.count(expert) == 1) continue;
    for (int64_t i = 0; i < groups.count; ++i) {
      const int64_t row = order.first[expert] + groups.First(i), count = groups.First(i + 1) - groups.First(i);
      for (int64_t t = 0; t < count; ++t) x[t] = Activations(order.rows[row + t]);
      round(x, count, row);
    }
  }
  for (int64_t token = 0; order.shared > 0 && token < matmul_.tokens; ++token) {
    x[0] = Activations(static_cast<int32_t>(token * matmul_.used));
    round(x, 1, rows_ + token);
  }
}

int64_t ExpertPlan::Pieces(const Order& order, int64_t expert) const {
  const int64_t groups = Groups(kernels_, order.count(expert)).count;
  if (groups == 0) return 0;
  return std::clamp<int64_t>(threads_ * kExpertPieces * groups / order.groups, 1, matmul_.first.panel_count());
}

void ExpertPlan::MultiplyPiece(const Order& order, int64_t expert, int64_t piece, uint8_t* work) const {
  PackedMatrix matrix = matmul_.first;
  matrix.panels += static_cast<size_t>(expert) * PackedBytes(*matrix.format, matrix.width, matrix.rows);
  const int64_t count = order.count(expert), pieces = Pieces(order, expert), panels = matrix.panel_count();
  const int32_t* rows = order.rows + order.first[expert];
  const bool is_shared = count == 1 && order.shared > 0;
  const int32_t* rounded = Rounded(work, is_shared ? rows_ + *rows / matmul_.used : order.first[expert]);
  MultiplyPanels(kernels_, matrix, rounded, count, panels * piece / pieces, panels * (piece + 1) / pieces,
                 {matmul_.y, matrix.rows, rows});
}

}  // namespace onpolicy::matmul
