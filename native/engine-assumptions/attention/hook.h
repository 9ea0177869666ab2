// Nodes of fused attention in the engine's graphs -> computed here, by the engine's threads, for callers that want it.
#pragma once
#include <string>

#include "engine-assumptions/attention/cell-positions.h"
#include "engine-assumptions/matmul/install.h"

namespace onpolicy::attention {

// Call once per process, after the buffer type of matmuls is installed. Checks this addon's attention against the engine's.
void Install(ggml_backend_dev_t cpu);
// Returns the name of the set of kernels. Null: all attention is ggml's.
const char* Installed();

// Numbers of nodes that were computed in a Scope.
struct NodeCounts {
  int attention = 0;      // fused attention
  int own_attention = 0;  // of them, those that this addon has computed
  int ordered = 0;        // of these, those that read cells with known positions
  int rules = 0;          // gated delta rules that this addon has computed
  int rules_in_place = 0; // of them, those that read and wrote states in the cache
  int factors = 0;        // looks at matmuls with factors of adapters
};

// During its lifetime, graphs that the engine plans on this thread use this addon's attention if `is_wanted`. Graphs of other threads and
// of other users of the same libraries are unchanged. `positions`: cell positions of the context that computes; null if they are not
// recorded. `counts`: receives the nodes; may be null.
class Scope {
 public:
  explicit Scope(bool is_wanted, CellPositions* positions = nullptr, NodeCounts* counts = nullptr);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  // Used only in builds with kernels.
  [[maybe_unused]] const bool outer_;
  [[maybe_unused]] CellPositions* const outer_positions_;
  [[maybe_unused]] NodeCounts* const outer_counts_;
};

// Checks that the positions of a pool's cells were known where this addon computed attention. Models without rotations have none.
void CheckPositions(const NodeCounts& counts, const CellPositions& positions);

// During its lifetime, checks the nodes of graphs that the engine plans on this thread.
class GraphCheck {
 public:
  GraphCheck();
  ~GraphCheck();
  GraphCheck(const GraphCheck&) = delete;
  GraphCheck& operator=(const GraphCheck&) = delete;

  // The first node whose rows may have other bits in another batch. Empty if there is none.
  const std::string& variant() const { return variant_; }
  // True if this addon computes all attention.
  bool has_own_attention() const { return has_own_attention_; }

 private:
  friend struct CheckedNodes;
  std::string variant_;
  bool has_own_attention_;
};

}  // namespace onpolicy::attention
