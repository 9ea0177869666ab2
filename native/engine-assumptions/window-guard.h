// Sequences that share the cells of a cache with sliding windows -> cells that are kept as long as their sequences.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine-assumptions/library.h"

namespace onpolicy {

// The engine reuses a cell, though others are free, once its only sequence has moved on by a window. But a sequence that is cut back, or
// copied in part, reads that cell again. The engine keeps cells of two sequences, so this adds a second sequence to the cells that it may
// reuse.
class WindowGuard {
 public:
  // Half of the sequence numbers that the engine has; the others are for guards.
  static constexpr size_t kMostSequences = 128;

  // `window`: the model's window in tokens; 0 if no cell is reused.
  void Begin(llama_context* context, int32_t window, size_t sequences) {
    context_ = context;
    window_ = window;
    guarded_.assign(window > 0 ? sequences : 0, 0);
  }

  // Call it after each change of a sequence's cells, before the next pass.
  void Guard(int32_t sequence) {
    if (guarded_.empty()) return;
    llama_memory_t memory = Api().llama_get_memory(context_);
    int32_t& guarded = guarded_[static_cast<size_t>(sequence)];
    const int32_t end = Api().llama_memory_seq_pos_max(memory, sequence) + 1;
    if (end < window_ || guarded >= end / window_ * window_) return;  // for sliding windows and for chunked ones
    Api().llama_memory_seq_cp(memory, sequence, GuardOf(sequence), guarded, -1);
    guarded = end;
  }

  // Call it when the engine has lost the second sequences of all cells.
  void GuardAgain() {
    for (size_t sequence = 0; sequence < guarded_.size(); ++sequence) {
      guarded_[sequence] = 0;
      Guard(static_cast<int32_t>(sequence));
    }
  }

  // Removes the cells at [from, to) of a sequence. A negative bound means no bound.
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
  std::vector<int32_t> guarded_;  // (sequences) position from which cells have only one sequence; empty: guarding is off
};

}  // namespace onpolicy
