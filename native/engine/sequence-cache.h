// Edits of the KV cache and the states of sequences -> the cells that sequences have, and the states that can be taken back, saved and
// loaded.
#pragma once
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "engine-assumptions/rollback.h"
#include "engine-assumptions/window-guard.h"
#include "engine/context-options.h"
#include "engine/step-input.h"

namespace onpolicy {

// The cache of one context, which must outlive it. Call its functions only between passes.
class SequenceCache {
 public:
  void Begin(llama_context* context, const ContextOptions& options, const Model& model);

  // Applies an edit of a step: kind, sequence, target, from, to.
  void Edit(const int32_t* edit);
  // Removes the cells at [from, to) of a sequence. A negative bound means no bound.
  void Remove(int32_t sequence, int32_t from, int32_t to);
  // Records a pass that has computed tokens of these sequences, (count).
  void Pass(const int32_t* sequences, size_t count);

  // Saves the part of a sequence's cache that cannot be cut (recurrent state, cells of sliding windows) under a number. Returns its size in
  // bytes, or 0 if the engine cannot save it.
  size_t SaveCheckpoint(int32_t sequence, int32_t number);
  // Saves the whole cache of a sequence as bytes, and loads it into an empty one.
  std::vector<uint8_t> Save(int32_t sequence) const;
  void Load(int32_t sequence, const std::vector<uint8_t>& state);
  // Runs `work`, in which the engine forgets the cells of all sequences, and restores them. Throws BACKEND_FAILED if they are lost.
  void Keep(const std::function<void()>& work);

  // Number of last tokens of a recurrent sequence that can be taken back.
  uint32_t rollback_tokens() const { return rollback_.most(); }
  // Number of a sequence's last tokens whose cells are kept; 0 means all.
  int32_t window_tokens() const { return window_tokens_; }

 private:
  // Restores a checkpoint into a sequence. The caller cuts the other cells behind it. Returns false if there is no room, or no such
  // checkpoint.
  bool RestoreCheckpoint(int32_t sequence, int32_t number) const;
  bool Restore(int32_t sequence, const std::vector<uint8_t>& bytes, uint32_t flags) const;
  void CutState(int32_t sequence, int32_t from);
  void Copy(int32_t from, int32_t to, int32_t start, int32_t end);

  llama_context* context_ = nullptr;
  bool is_kv_unified_ = false, is_recurrent_ = false;
  int32_t window_tokens_ = 0;
  Rollback rollback_;  // limits of taking back recurrent state
  std::unordered_map<int32_t, std::vector<uint8_t>> checkpoints_;  // by number
  WindowGuard guard_;
};

}  // namespace onpolicy
