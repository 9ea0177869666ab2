// A part of attention, the rows of some tokens and heads -> its sums over blocks of cells.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/attention/cell-order.h"

namespace onpolicy::attention {

constexpr float kUnseen = -std::numeric_limits<float>::infinity();
constexpr int64_t kAllSpans = -1;

// Adds a row's sums over some cells to others: the largest score, the sum of weights relative to it, and the weighted values.
inline void Add(const float* from, int width, float* to) {
  if (from[0] == kUnseen) return;
  if (to[0] == kUnseen) {
    std::memcpy(to, from, (2 + static_cast<size_t>(width)) * sizeof(float));
    return;
  }
  const float largest = std::max(from[0], to[0]);
  const float old_factor = std::exp(to[0] - largest), new_factor = std::exp(from[0] - largest);
  to[0] = largest;
  for (int i = 1; i < 2 + width; ++i) to[i] = to[i] * old_factor + from[i] * new_factor;
}

// Query rows of some tokens and KV heads: by KV head, then by token, then by the query heads that share it.
struct Plan::Rows {
  TokenGroup group;
  int64_t kv_head, first_head;  // the first ones; first_head: of those that share a KV head
  int tokens, kv_heads, heads;

  int of_head() const { return tokens * heads; }  // of a KV head
  int all() const { return kv_heads * of_head(); }
  int64_t TokenOf(int row) const { return group.first_token + row % of_head() / heads; }
  int64_t HeadOf(int row, const Attention& attention) const {
    return (kv_head + row / of_head()) * (attention.heads / attention.kv_heads) + first_head + row % heads;
  }
};

// A thread's memory.
struct Plan::Scratch {
  float *scores, *largest, *sums, *y, *part, *keys, *values;
  const float** q;
};

// The rows of one task, over all spans or one of them.
class Plan::Task {
 public:
  Task(const Plan& plan, const Kernels& kernels, const Rows& rows, const Scratch& scratch)
      : plan_(plan), attention_(plan.attention_), kernels_(kernels), rows_(rows), order_(*rows.group.order), scratch_(scratch) {
    const Attention& a = attention_;
    for (int row = 0; row < rows.all(); ++row)
      scratch.q[row] = reinterpret_cast<const float*>(a.q + static_cast<size_t>(rows.group.stream) * a.q_stream +
                                                      static_cast<size_t>(rows.TokenOf(row)) * a.q_token +
                                                      static_cast<size_t>(rows.HeadOf(row, a)) * a.q_head);
    block_.heads = rows.heads;
    block_.k_stride = a.k_cell;
    block_.v_stride = a.v_cell;
    block_.scale = a.scale;
    block_.cap = a.cap;
    block_.keys = scratch.keys;
    block_.values = scratch.values;
    block_.scores = scratch.scores;
    block_.k_vectors = a.k_width / kLanes;
    block_.v_vectors = a.v_width / kLanes;
  }

  // The parts of all rows, of one span or kAllSpans.
  void Run(int64_t only) {
    for (int row = 0; row < rows_.all(); ++row) PartOf(row)[0] = kUnseen;
    spans_.fill(kNoSpan);
    const CellBlock *const begin = order_.blocks.data() + rows_.group.first_block, *const end = order_.blocks.data() + rows_.group.end_block;
    const auto next_of = [&](const CellBlock* block) {
      while (block != end && only != kAllSpans && block->span != only) ++block;
      return block;
    };
    for (const CellBlock *run = next_of(begin), *next; run != end; run = next) {
      const CellBlock* run_end = run + 1;
      while (IsMany(*run) && run_end != end && IsSameRows(*run, *run_end)) ++run_end;
      next = next_of(run_end);
      Enter(*run);
      for (int head = 0; head < rows_.kv_heads; ++head)
        for (const CellBlock* block = run; block != run_end; ++block) {
          if (block + 1 != run_end) SetAhead(block + 1, head);
          else if (head + 1 < rows_.kv_heads) SetAhead(run, head + 1);
          else SetAhead(next == end ? nullptr : next, 0);
          Attend(*block, head);
        }
    }
    for (int token = 0; token < rows_.tokens; ++token) EndSpan(token);
  }

 private:
  static constexpr int64_t kNoSpan = -1;

  const uint8_t* KeysOf(int head) const {
    return attention_.k + static_cast<size_t>(rows_.group.stream) * attention_.k_stream + static_cast<size_t>(rows_.kv_head + head) * attention_.k_head;
  }
  const uint8_t* ValuesOf(int head) const {
    return attention_.v + static_cast<size_t>(rows_.group.stream) * attention_.v_stream + static_cast<size_t>(rows_.kv_head + head) * attention_.v_head;
  }
  float* PartOf(int row) const { return scratch_.part + static_cast<size_t>(row) * plan_.part_floats_; }

  // Returns true if the block has many rows: a head's sums then stay in the cache while its blocks of a span are added. With few rows, all
  // heads of a block are read together.
  bool IsMany(const CellBlock& block) const { return (block.end_token - block.first_token) * rows_.heads >= kLeastManyRows; }

  static bool IsSameRows(const CellBlock& a, const CellBlock& b) {
    return a.span == b.span && a.first_token == b.first_token && a.end_token == b.end_token;
  }

  // Sets the cells that are prefetched during the next block: those of the block after it, if any.
  void SetAhead(const CellBlock* block, int head) {
    block_.ahead = {};
    if (!block) return;
    block_.ahead.cells = order_.cells.data() + block->cells + block->first;
    block_.ahead.count = block->end - block->first;
    block_.ahead.k = KeysOf(head);
    block_.ahead.v = ValuesOf(head);
  }

  // Work(row) for all rows of a token.
  template <typename Work>
  void ForRowsOf(int token, const Work& work) const {
    for (int head = 0; head < rows_.kv_heads; ++head)
      for (int i = 0; i < rows_.heads; ++i) work((head * rows_.tokens + token) * rows_.heads + i);
  }

  // Begins the block's span for its tokens, and ends their earlier spans.
  void Enter(const CellBlock& block) {
    for (int token = block.first_token - rows_.group.first_token; token < block.end_token - rows_.group.first_token; ++token) {
      if (spans_[static_cast<size_t>(token)] == block.span) continue;
      EndSpan(token);
      spans_[static_cast<size_t>(token)] = block.span;
      ForRowsOf(token, [&](int row) {
        scratch_.largest[row] = kUnseen;
        std::fill_n(scratch_.sums + row * kLanes, kLanes, 0.0f);
        std::fill_n(scratch_.y + row * attention_.v_width, attention_.v_width, 0.0f);
      });
    }
  }

  // Adds the sums of a token's span to its parts.
  void EndSpan(int token) {
    if (spans_[static_cast<size_t>(token)] == kNoSpan) return;
    const int width = attention_.v_width;
    float* one = PartOf(rows_.all());  // there is room for one more
    ForRowsOf(token, [&](int row) {
      if (scratch_.largest[row] == kUnseen) return;
      one[0] = scratch_.largest[row];
      one[1] = kernels_.sum(scratch_.sums + row * kLanes);
      std::memcpy(one + 2, scratch_.y + row * width, static_cast<size_t>(width) * sizeof(float));
      Add(one, width, PartOf(row));
    });
  }

  void Attend(const CellBlock& block, int head) {
    const int row = (head * rows_.tokens + block.first_token - rows_.group.first_token) * rows_.heads;
    block_.q = scratch_.q + row;
    block_.rows = (block.end_token - block.first_token) * rows_.heads;
    block_.k = KeysOf(head);
    block_.v = ValuesOf(head);
    block_.index = order_.cells.data() + block.cells;
    block_.first = block.first;
    block_.end = block.end;
    block_.seen = block.seen == CellBlock::kAll ? nullptr : order_.seen.data() + block.seen;
    block_.largest = scratch_.largest + row;
    block_.sums = scratch_.sums + row * kLanes;
    block_.y = scratch_.y + row * attention_.v_width;
    kernels_.attend[static_cast<size_t>(attention_.type)](block_);
  }

  const Plan& plan_;
  const Attention& attention_;
  const Kernels& kernels_;
  const Rows& rows_;
  const CellOrder& order_;
  const Scratch& scratch_;
  Block block_{};
  std::array<int64_t, kMostTokens> spans_;  // span of each token's sums
};

}  // namespace onpolicy::attention
