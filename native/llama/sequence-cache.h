// Edits of the KV cache and the states of sequences -> which cells they have, and what of them can be taken back, kept and loaded.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "llama/context-options.h"
#include "llama/rollback.h"
#include "llama/step-input.h"
#include "llama/window-guard.h"

namespace onpolicy {

// Of one context, which must outlive it. Only between passes.
class SequenceCache {
 public:
  void Begin(llama_context* context, const ContextOptions& options, const Model& model);

  // An edit of a step: kind, sequence, target, from, to.
  void Edit(const int32_t* edit);
  // Removes the cells at [from, to) of a sequence; below 0: without a bound.
  void Remove(int32_t sequence, int32_t from, int32_t to);
  // A pass has computed tokens of these sequences, (count).
  void Pass(const int32_t* sequences, size_t count);

  // Keeps what cannot be cut of a sequence's cache (recurrent state, cells of sliding windows), as it is now, under a number. Returns its
  // bytes; 0: the engine cannot save it.
  size_t SaveCheckpoint(int32_t sequence, int32_t number);
  // The whole cache of a sequence as bytes, and back into an empty one.
  std::vector<uint8_t> Save(int32_t sequence) const;
  void Load(int32_t sequence, const std::vector<uint8_t>& state);

  // Last tokens of a recurrent sequence that can be taken back.
  uint32_t rollback_tokens() const { return rollback_.most(); }
  // Tokens of a sequence, the last ones, whose cells it keeps; 0: all.
  int32_t window_tokens() const { return window_tokens_; }

 private:
  // Puts it into a sequence, whose other cells behind it the caller cuts. False: it finds no room, or there is none of this number.
  bool RestoreCheckpoint(int32_t sequence, int32_t number) const;
  bool Restore(int32_t sequence, const std::vector<uint8_t>& bytes, uint32_t flags) const;
  void CutState(int32_t sequence, int32_t from);
  void Copy(int32_t from, int32_t to, int32_t start, int32_t end);

  llama_context* context_ = nullptr;
  bool is_kv_unified_ = false, is_recurrent_ = false;
  int32_t window_tokens_ = 0;
  Rollback rollback_;  // of recurrent state
  std::unordered_map<int32_t, std::vector<uint8_t>> checkpoints_;  // by number
  WindowGuard guard_;
};

}  // namespace onpolicy
