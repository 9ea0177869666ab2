// Sequences that share the cells of a cache with sliding windows -> cells that stay as long as their sequences.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "llama/library.h"

namespace onpolicy {

// The engine hands out a cell again, though others are free, once its only sequence has moved on by a window. But a sequence that is cut
// back, or copied in part, sees that cell again. Cells of two sequences stay: so those that may be handed out are also of a second one.
class WindowGuard {
 public:
  // The engine has numbers for twice as many.
  static constexpr size_t kMostSequences = 128;

  // `window`: of the model, in tokens; 0: nothing is handed out again.
  void Begin(llama_context* context, int32_t window, size_t sequences) {
    context_ = context;
    window_ = window;
    guarded_.assign(window > 0 ? sequences : 0, 0);
  }

  // After each change of a sequence's cells, before the next pass.
  void Guard(int32_t sequence) {
    if (guarded_.empty()) return;
    llama_memory_t memory = Api().llama_get_memory(context_);
    int32_t& guarded = guarded_[static_cast<size_t>(sequence)];
    const int32_t end = Api().llama_memory_seq_pos_max(memory, sequence) + 1;
    if (end < window_ || guarded >= end / window_ * window_) return;  // of windows that move, and of those that are chunks
    Api().llama_memory_seq_cp(memory, sequence, GuardOf(sequence), guarded, -1);
    guarded = end;
  }

  // Removes the cells at [from, to) of a sequence; below 0: without a bound.
  void Remove(int32_t sequence, int32_t from, int32_t to) {
    llama_memory_t memory = Api().llama_get_memory(context_);
    Api().llama_memory_seq_rm(memory, sequence, from, to);
    if (guarded_.empty()) return;
    int32_t& guarded = guarded_[static_cast<size_t>(sequence)];
    if (std::max(from, 0) >= guarded) return;
    Api().llama_memory_seq_rm(memory, GuardOf(sequence), from, -1);
    guarded = std::max(from, 0);
    Guard(sequence);
  }

 private:
  static int32_t GuardOf(int32_t sequence) { return 2 * static_cast<int32_t>(kMostSequences) - 1 - sequence; }

  llama_context* context_ = nullptr;
  int32_t window_ = 0;
  std::vector<int32_t> guarded_;  // (sequences) position from which on cells have one sequence; empty: nothing is guarded
};

}  // namespace onpolicy
