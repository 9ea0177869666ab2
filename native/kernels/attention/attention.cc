#include "kernels/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/attention/task.h"

namespace onpolicy::attention {
namespace {

constexpr int kLeastRows = 32;         // of a KV head in a task, if there are that many
constexpr int kMostRows = 256;         // a block of keys, its values, the rows and their sums stay in the cache
constexpr int kMostNumbers = 1 << 16;  // of the rows of a KV head and of their sums
constexpr int kFewRows = 128;          // of a KV head, typical of decoding: cells are read from memory about once, all heads of a cell together

size_t RoundedUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Returns the factor by which a row's weighted values are multiplied, with a further cell of the score `sink`.
float FactorOf(const float* total, float sink) {
  if (total[0] == kUnseen || total[1] == 0) return 0;
  if (sink == kUnseen) return 1 / total[1];
  const float largest = std::max(total[0], sink), factor = std::exp(total[0] - largest);
  return factor / (total[1] * factor + std::exp(sink - largest));
}

}  // namespace

Division::Division(const Attention& attention, int threads) {
  const int64_t shared = attention.heads / attention.kv_heads;
  for (int rows = std::clamp(kMostNumbers / (attention.k_width + attention.v_width), kLeastRows, kMostRows);; rows /= 2) {
    head_parts = static_cast<int>((shared + rows - 1) / rows);
    part_heads = static_cast<int>((shared + head_parts - 1) / head_parts);
    const int64_t group_tokens = std::clamp(rows / part_heads, 1, kMostTokens);
    token_groups = (attention.tokens + group_tokens - 1) / group_tokens;
    if (rows < 2 * kLeastRows || attention.streams * token_groups * attention.kv_heads * head_parts >= LeastTasks(threads)) return;
  }
}

TokenGroup Division::GroupOf(const Attention& attention, int64_t index) const {
  const int64_t group = index % token_groups;
  return {index / token_groups, static_cast<int>(attention.tokens * group / token_groups),
          static_cast<int>(attention.tokens * (group + 1) / token_groups)};
}

Plan::Plan(const Attention& attention, int threads) : attention_(attention), division_(attention, threads), threads_(threads) {
  const CellOrders* orders = attention.orders;
  const int64_t all_spans = (attention.cells / kBlockCells + kSpanBlocks - 1) / kSpanBlocks;
  groups_ = orders ? static_cast<int64_t>(orders->groups.size()) : attention.streams * division_.token_groups;
  spans_ = std::max<int64_t>(orders ? orders->spans : all_spans, 1);
  task_rows_ = static_cast<int>(orders ? orders->most_tokens : (attention.tokens + division_.token_groups - 1) / division_.token_groups) * division_.part_heads;
  task_heads_ = task_rows_ > kFewRows ? 1 : static_cast<int>(attention.kv_heads);
  const auto row_tasks = [&] { return groups_ * division_.head_parts * (attention.kv_heads / task_heads_); };
  while (task_heads_ > 1 && row_tasks() * spans_ < LeastTasks(threads)) task_heads_ = task_heads_ % 2 == 0 ? task_heads_ / 2 : 1;
  row_tasks_ = row_tasks();
  is_split_ = threads > 1 && spans_ > 1 && row_tasks_ < LeastTasks(threads);
  tasks_ = is_split_ ? row_tasks_ * spans_ : row_tasks_;
  part_floats_ = 2 + static_cast<size_t>(attention.v_width);
  const auto rows = static_cast<size_t>(task_rows_), all_rows = rows * static_cast<size_t>(task_heads_);
  const size_t of_cell = static_cast<size_t>(attention.k_width + attention.v_width);
  const size_t of_row = 1 + kLanes + static_cast<size_t>(attention.v_width) + part_floats_;
  const size_t floats = kBlockCells * (of_cell + rows) + all_rows * of_row + part_floats_;
  thread_bytes_ = RoundedUp(floats * sizeof(float) + all_rows * sizeof(float*));
  if (is_split_) partial_bytes_ = static_cast<size_t>(tasks_) * all_rows * part_floats_ * sizeof(float);
}

// With few rows, the threads compute neighbouring heads. With many, they compute different tokens of the same head, whose keys and values
// stay in the cache.
Plan::Rows Plan::RowsOf(int64_t row_task) const {
  const auto next = [&row_task](int64_t count) {
    const int64_t digit = row_task % count;
    row_task /= count;
    return digit;
  };
  Rows rows;
  const int64_t group = next(groups_), part = next(division_.head_parts);
  rows.group = attention_.orders ? attention_.orders->groups[static_cast<size_t>(group)] : division_.GroupOf(attention_, group);
  rows.tokens = rows.group.end_token - rows.group.first_token;
  rows.kv_head = row_task * task_heads_;
  rows.kv_heads = task_heads_;
  rows.first_head = part * division_.part_heads;
  rows.heads = static_cast<int>(std::min<int64_t>(division_.part_heads, attention_.heads / attention_.kv_heads - rows.first_head));
  return rows;
}

Plan::Scratch Plan::ScratchOf(int thread, uint8_t* work) const {
  auto* next = reinterpret_cast<float*>(work + static_cast<size_t>(thread) * thread_bytes_);
  const auto take = [&](size_t floats) { return std::exchange(next, next + floats); };
  Scratch scratch;
  const auto rows = static_cast<size_t>(task_rows_), all_rows = rows * static_cast<size_t>(task_heads_);
  // Vectors come first, so that they are at multiples of their size, then elements of 8 bytes.
  scratch.keys = take(kBlockCells * static_cast<size_t>(attention_.k_width));
  scratch.values = take(kBlockCells * static_cast<size_t>(attention_.v_width));
  scratch.scores = take(rows * kBlockCells);
  scratch.sums = take(all_rows * kLanes);
  scratch.y = take(all_rows * static_cast<size_t>(attention_.v_width));
  scratch.q = reinterpret_cast<const float**>(take(all_rows * sizeof(float*) / sizeof(float)));
  scratch.largest = take(all_rows);
  scratch.part = take((all_rows + 1) * part_floats_);
  return scratch;
}

float* Plan::Partial(int64_t row_task, int64_t span, uint8_t* work) const {
  auto* partials = reinterpret_cast<float*>(work + static_cast<size_t>(threads_) * thread_bytes_);
  return partials + static_cast<size_t>((row_task * spans_ + span) * task_rows_ * task_heads_) * part_floats_;
}

void Plan::Finish(const Rows& rows, const float* parts) const {
  const auto width = static_cast<size_t>(attention_.v_width);
  for (int row = 0; row < rows.all(); ++row) {
    const int64_t token = rows.TokenOf(row), head = rows.HeadOf(row, attention_);
    float* y = attention_.y + static_cast<size_t>((rows.group.stream * attention_.tokens + token) * attention_.heads + head) * width;
    const float* total = parts + static_cast<size_t>(row) * part_floats_;
    const float factor = FactorOf(total, attention_.sinks ? attention_.sinks[head] : kUnseen);
    for (size_t i = 0; i < width; ++i) y[i] = factor == 0 ? 0.0f : total[2 + i] * factor;
  }
}

void Plan::Run(const Kernels& kernels, int64_t task, int thread, uint8_t* work) const {
  const int64_t row_task = is_split_ ? task / spans_ : task;
  Rows rows = RowsOf(row_task);
  const Scratch scratch = ScratchOf(thread, work);
  thread_local CellOrder own;
  if (!rows.group.order) SetOrder(attention_, kernels, &rows.group, &own);
  Task(*this, kernels, rows, scratch).Run(is_split_ ? task % spans_ : kAllSpans);
  if (is_split_) std::copy_n(scratch.part, static_cast<size_t>(rows.all()) * part_floats_, Partial(row_task, task % spans_, work));
  else Finish(rows, scratch.part);
}

void Plan::Merge(int64_t merge, uint8_t* work) const {
  const Rows rows = RowsOf(merge);
  float* total = Partial(merge, 0, work);
  for (int64_t span = 1; span < spans_; ++span)
    for (int row = 0; row < rows.all(); ++row)
      Add(Partial(merge, span, work) + static_cast<size_t>(row) * part_floats_, attention_.v_width,
          total + static_cast<size_t>(row) * part_floats_);
  Finish(rows, total);
}

}  // namespace onpolicy::attention
