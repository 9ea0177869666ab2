// Queries, cached keys and values, a mask -> attention, by one set of kernels. Threads share it by tasks. If the positions of cells are
// known, or equal their places, the order of a row's sums depends only on the cells that it sees, and not on other rows, cells or threads.
#pragma once
#include <vector>

#include "kernels/attention/kernels.h"

namespace onpolicy::attention {

// Which cells a token sees without a mask.
struct Sight {
  int64_t first_token = -1;  // the cell of token 0: token i sees the cells up to first_token + i; below 0: every token sees every cell
  int64_t window = 0;        // cells that a token sees, its own included; 0: all of these
};

struct CellOrder;
struct CellOrders;

// Strides are in bytes. Each stream has separate cells.
struct Attention {
  const uint8_t *q, *k, *v;
  const uint8_t* mask;       // 16-bit floats: 0 where a row sees a cell, else minus infinity; null: `sight` applies
  float* y;                  // (streams, tokens, heads, v_width)
  size_t q_token, q_head, q_stream;
  size_t k_cell, k_head, k_stream;
  size_t v_cell, v_head, v_stream;
  size_t mask_token, mask_stream;
  int64_t streams, tokens, heads, kv_heads, cells;  // cells: a multiple of kBlockCells
  int k_width, v_width;      // multiples of kLanes
  CellType type;
  float scale;
  float cap;                 // of scores, see Block; 0: none
  const float* sinks;        // (heads) scores of a further cell without a value, or null
  const CellOrders* orders;  // of the cells; null: each task computes them
  Sight sight;
  const int32_t* places;     // (cells) index of each cell in k and v; null: cell i is at i
  const int32_t* positions;  // (cells) position of each cell in its sequence, for a cache that sequences share; null: unknown
};

constexpr int64_t kSpanBlocks = 16;  // blocks after which a new sum begins
constexpr int kMostTokens = 128;     // of a task

struct TokenGroup;

// The division of rows into tasks.
struct Division {
  int64_t token_groups;        // of a stream
  int head_parts, part_heads;  // of the query heads that share a KV head

  Division(const Attention& attention, int threads);
  // `index`: of (streams, token_groups).
  TokenGroup GroupOf(const Attention& attention, int64_t index) const;
};

// Number of tasks that lets threads end at about the same time.
constexpr int64_t LeastTasks(int threads) { return 4 * threads; }

// The division of an attention among threads.
class Plan {
 public:
  Plan(const Attention& attention, int threads);

  size_t work_bytes() const { return static_cast<size_t>(threads_) * thread_bytes_ + partial_bytes_; }
  int64_t tasks() const { return tasks_; }
  // Rows with few tasks are split by spans of cells: all tasks are then followed by merges, with a barrier between them.
  int64_t merges() const { return is_split_ ? row_tasks_ : 0; }

  // `work` is at a multiple of 64 and the same for all threads.
  void Run(const Kernels& kernels, int64_t task, int thread, uint8_t* work) const;
  void Merge(int64_t merge, uint8_t* work) const;

 private:
  struct Rows;
  struct Scratch;
  class Task;
  Rows RowsOf(int64_t row_task) const;
  Scratch ScratchOf(int thread, uint8_t* work) const;
  float* Partial(int64_t row_task, int64_t span, uint8_t* work) const;
  void Finish(const Rows& rows, const float* part) const;

  const Attention& attention_;
  const Division division_;
  int threads_, task_heads_, task_rows_;  // task_rows_: of a KV head
  int64_t groups_, spans_, row_tasks_, tasks_;
  bool is_split_;
  size_t thread_bytes_, part_floats_, partial_bytes_ = 0;
};

}  // namespace onpolicy::attention
