#include "attention/attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "attention/task.h"

namespace onpolicy::attention {
namespace {

constexpr int64_t kTasksPerThread = 4;
constexpr int kLeastRows = 32;            // of a task, where there are as many
constexpr int kMostNumbers = 1 << 16;     // of the rows of a task and of their sums
constexpr int64_t kFewRows = 128;         // of a KV head, as sequences have that decode: cells are read from memory, about once
constexpr int64_t kCachedHeads = 2;       // of many rows: heads for which a thread sees only once which cells there are

size_t RoundedUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

// By which a row's weighted values are multiplied, with a further cell of the score `sink`.
float FactorOf(const float* total, float sink) {
  if (total[0] == kUnseen || total[1] == 0) return 0;
  if (sink == kUnseen) return 1 / total[1];
  const float largest = std::max(total[0], sink), factor = std::exp(total[0] - largest);
  return factor / (total[1] * factor + std::exp(sink - largest));
}

}  // namespace

Plan::Plan(const Attention& attention, int threads) : attention_(attention), threads_(threads) {
  const int64_t shared = attention.heads / attention.kv_heads;
  words_ = attention.cells / kBlockCells;
  spans_ = (words_ + kSpanBlocks - 1) / kSpanBlocks;
  int rows = std::clamp(kMostNumbers / (attention.k_width + attention.v_width), kLeastRows, kMostRows);
  for (;; rows /= 2) {
    head_parts_ = static_cast<int>((shared + rows - 1) / rows);
    group_heads_ = static_cast<int>((shared + head_parts_ - 1) / head_parts_);
    const int64_t group_tokens = std::clamp(rows / group_heads_, 1, kMostTokens);
    token_groups_ = (attention.tokens + group_tokens - 1) / group_tokens;
    row_tasks_ = attention.streams * token_groups_ * attention.kv_heads * head_parts_;
    if (rows < 2 * kLeastRows || row_tasks_ >= kTasksPerThread * threads) break;
  }
  task_tokens_ = static_cast<int>((attention.tokens + token_groups_ - 1) / token_groups_);
  task_rows_ = task_tokens_ * group_heads_;
  reads_cells_once_ = attention.tokens * shared <= kFewRows;
  batch_ = reads_cells_once_ ? attention.kv_heads : std::gcd(attention.kv_heads, kCachedHeads);
  side_heads_ = batch_;
  while (batch_ > 1 && row_tasks_ < batch_ * kTasksPerThread * threads) batch_ = batch_ % 2 == 0 ? batch_ / 2 : 1;
  is_split_ = threads > 1 && spans_ > 1 && row_tasks_ < kTasksPerThread * threads;
  tasks_ = is_split_ ? row_tasks_ * spans_ : row_tasks_;
  part_floats_ = 2 + static_cast<size_t>(attention.v_width);
  const size_t of_cell = static_cast<size_t>(attention.k_width + attention.v_width + 1);
  const size_t of_row = kBlockCells + 1 + kLanes + static_cast<size_t>(attention.v_width) + part_floats_;
  const size_t floats = kBlockCells * of_cell + static_cast<size_t>(task_rows_) * of_row + part_floats_ +
                        (attention.positions ? 2 * static_cast<size_t>(attention.cells) : 0);
  const size_t of_token = (attention.seen ? 0 : static_cast<size_t>(words_)) + 1;
  thread_bytes_ = RoundedUp(floats * sizeof(float) + (static_cast<size_t>(task_tokens_) * of_token + 2 * static_cast<size_t>(words_)) * sizeof(uint64_t));
  if (is_split_) partial_bytes_ = static_cast<size_t>(tasks_ * task_rows_) * part_floats_ * sizeof(float);
}

// The heads of a group lie side by side: they see the same cells, and their keys are neighbours in memory. Of many groups only a few heads do, so that their
// keys stay in the cache.
Plan::Rows Plan::RowsOf(int64_t row_task) const {
  const auto next = [&row_task](int64_t count) {
    const int64_t digit = row_task % count;
    row_task /= count;
    return digit;
  };
  const int64_t shared = attention_.heads / attention_.kv_heads;
  Rows rows;
  rows.kv_head = next(side_heads_);
  const int64_t group = next(token_groups_), part = next(head_parts_);
  rows.kv_head += next(attention_.kv_heads / side_heads_) * side_heads_;
  rows.stream = row_task;
  rows.first_token = attention_.tokens * group / token_groups_;
  rows.tokens = static_cast<int>(attention_.tokens * (group + 1) / token_groups_ - rows.first_token);
  rows.first_head = rows.kv_head * shared + part * group_heads_;
  rows.heads = static_cast<int>(std::min<int64_t>(group_heads_, shared - part * group_heads_));
  return rows;
}

Plan::Scratch Plan::ScratchOf(int thread, uint8_t* work) const {
  auto* next = reinterpret_cast<float*>(work + static_cast<size_t>(thread) * thread_bytes_);
  const auto take = [&](size_t floats) { return std::exchange(next, next + floats); };
  Scratch scratch;
  const auto words = static_cast<size_t>(words_), rows = static_cast<size_t>(task_rows_), tokens = static_cast<size_t>(task_tokens_);
  // Vectors first, which so lie at multiples of their size; then what has 8 bytes each.
  scratch.keys = take(kBlockCells * static_cast<size_t>(attention_.k_width));
  scratch.values = take(kBlockCells * static_cast<size_t>(attention_.v_width));
  scratch.scores = take(rows * kBlockCells);
  scratch.sums = take(rows * kLanes);
  scratch.y = take(rows * static_cast<size_t>(attention_.v_width));
  scratch.seen = reinterpret_cast<uint64_t*>(take(attention_.seen ? 0 : 2 * words * tokens));
  scratch.any = reinterpret_cast<uint64_t*>(take(2 * words));
  scratch.all = reinterpret_cast<uint64_t*>(take(2 * words));
  scratch.seen_of_block = reinterpret_cast<uint64_t*>(take(2 * tokens));
  scratch.largest = take(rows);
  scratch.part = take((rows + 1) * part_floats_);
  scratch.index = reinterpret_cast<int32_t*>(take(kBlockCells));
  const size_t listed = attention_.positions ? static_cast<size_t>(attention_.cells) : 0;
  scratch.shared = reinterpret_cast<int32_t*>(take(listed));
  scratch.list = reinterpret_cast<int32_t*>(take(listed));
  return scratch;
}

float* Plan::Partial(int64_t row_task, int64_t span, uint8_t* work) const {
  auto* partials = reinterpret_cast<float*>(work + static_cast<size_t>(threads_) * thread_bytes_);
  return partials + static_cast<size_t>((row_task * spans_ + span) * task_rows_) * part_floats_;
}

void Plan::Finish(const Rows& rows, const float* parts) const {
  const auto width = static_cast<size_t>(attention_.v_width);
  for (int row = 0; row < rows.count(); ++row) {
    const int64_t token = rows.first_token + row / rows.heads, head = rows.first_head + row % rows.heads;
    float* y = attention_.y +
               static_cast<size_t>((rows.stream * attention_.tokens + token) * attention_.heads + head) * width;
    const float* total = parts + static_cast<size_t>(row) * part_floats_;
    const float factor = FactorOf(total, attention_.sinks ? attention_.sinks[head] : kUnseen);
    for (size_t i = 0; i < width; ++i) y[i] = factor == 0 ? 0.0f : total[2 + i] * factor;
  }
}

void Plan::Run(const Kernels& kernels, int64_t task, int thread, uint8_t* work, Seen* seen) const {
  const int64_t row_task = is_split_ ? task / spans_ : task;
  const Rows rows = RowsOf(row_task);
  const Scratch scratch = ScratchOf(thread, work);
  Task run(*this, kernels, rows, scratch, seen);
  run.Run(is_split_ ? task % spans_ : -1, scratch.part);
  if (is_split_)
    std::copy_n(scratch.part, static_cast<size_t>(rows.count()) * part_floats_, Partial(row_task, task % spans_, work));
  else Finish(rows, scratch.part);
}

void Plan::Merge(int64_t merge, uint8_t* work) const {
  const Rows rows = RowsOf(merge);
  float* total = Partial(merge, 0, work);
  for (int64_t span = 1; span < spans_; ++span)
    for (int row = 0; row < rows.count(); ++row)
      Add(Partial(merge, span, work) + static_cast<size_t>(row) * part_floats_, attention_.v_width,
          total + static_cast<size_t>(row) * part_floats_);
  Finish(rows, total);
}

}  // namespace onpolicy::attention
