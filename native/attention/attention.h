// Queries, cached keys and values, a mask -> attention, by one set of kernels. Threads share it by tasks. Where the positions of cells are
// known, or are their places, the order of a row's sums depends on the cells it sees only: not on other rows, other cells or threads.
#pragma once
#include <vector>

#include "attention/kernels.h"

namespace onpolicy::attention {

// Which cells a token sees without a mask.
struct Sight {
  int64_t first_token = -1;  // the cell of token 0: token i sees the cells up to first_token + i; below 0: every token sees every cell
  int64_t window = 0;        // cells that a token sees, its own included; 0: all of these
};

struct SeenCells;

// Strides are in bytes. A stream has cells of its own.
struct Attention {
  const uint8_t *q, *k, *v;
  const uint8_t* mask;       // 16-bit floats: 0 where a row sees a cell, else minus infinity; null: as `sight` says
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
  const float* sinks;        // (heads) scores of a further cell without a value; null: there is none
  const SeenCells* seen;     // what the mask says; null: the tasks read it themselves
  Sight sight;
  const int32_t* places;     // (cells) where each cell lies in k and v; null: cell i at i
  const int32_t* positions;  // (cells) which one of its sequence each cell is, of a cache that sequences share; null: not known
};

// How threads share it.
class Plan {
 public:
  Plan(const Attention& attention, int threads);

  size_t work_bytes() const { return static_cast<size_t>(threads_) * thread_bytes_ + partial_bytes_; }
  int64_t tasks() const { return tasks_; }
  // Tasks that one thread does best one after the other: heads of the same tokens.
  int64_t batch() const { return batch_; }
  // Rows with few tasks are split by spans of cells: all tasks are then followed by merges, with a barrier between them.
  int64_t merges() const { return is_split_ ? row_tasks_ : 0; }

  // Tokens of one sequence, whose cells lie side by side or have known positions.
  struct Together {
    bool is_one_sequence = false;
    int64_t listed = 0, first = 0;  // in a cache that sequences share: how many cells they see, and the position of the first, see Sorted
  };
  // What a thread of a plan knows of the tokens of its last task.
  struct Seen {
    int64_t tokens = -1;  // which ones
    Together together;
  };
  // `work`: at a multiple of 64, the same for all threads; `seen`: of the thread.
  void Run(const Kernels& kernels, int64_t task, int thread, uint8_t* work, Seen* seen) const;
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
  int threads_, task_rows_, task_tokens_, group_heads_, head_parts_;
  int64_t token_groups_, words_, spans_, row_tasks_, tasks_, side_heads_, batch_;
  bool is_split_, reads_cells_once_;
  size_t thread_bytes_, part_floats_, partial_bytes_ = 0;
};

}  // namespace onpolicy::attention
