// The nodes of a context's first passes -> whether what this library assumes of graphs holds, and which kernels compute attention.
#pragma once
#include "engine-assumptions/attention/hook.h"

namespace onpolicy {

class FirstPass {
 public:
  // Returns true if the nodes of the next pass should be counted. `has_adapter`: an adapter is in use on the processor.
  bool IsWanted(bool has_adapter) const { return !is_done_ || (has_adapter && !has_seen_adapter_); }

  // Records the nodes of a pass. `positions`: those of the pool that it wrote; null if the cache is none.
  void See(const attention::NodeCounts& counts, const attention::CellPositions* positions, bool has_adapter);

  // Returns the name of the kernels that compute attention, "plain" if the engine does, or null before the first pass.
  const char* attention() const { return attention_; }

 private:
  // Sequences that share a state cannot use it in place, so several passes are looked at.
  static constexpr int kPasses = 4;

  const char* attention_ = nullptr;
  int passes_ = 0;
  bool is_done_ = false, has_seen_adapter_ = false;
};

}  // namespace onpolicy
