// Nodes of fused attention in the engine's graphs -> computed here, by the engine's threads, for callers that want it.
#pragma once
#include <string>

#include "attention/cell-positions.h"
#include "matmul/install.h"

namespace onpolicy::attention {

using matmul::Installation;

// Once per process, where the buffer type of matmuls is in place: checks attention of our own against the engine's.
const Installation& Install(ggml_backend_dev_t cpu);
const Installation& Installed();

// While it lives, graphs that the engine plans on this thread use attention of our own, if `is_wanted`. Other graphs, as those of other
// users of the same libraries, stay as they are. `positions`: of the cells of the context that computes; null: they are not kept.
class Scope {
 public:
  explicit Scope(bool is_wanted, CellPositions* positions = nullptr);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  // Where there are kernels.
  [[maybe_unused]] const bool outer_;
  [[maybe_unused]] CellPositions* const outer_positions_;
};

// While it lives, it looks at the nodes of graphs that the engine plans on this thread.
class GraphCheck {
 public:
  GraphCheck();
  ~GraphCheck();
  GraphCheck(const GraphCheck&) = delete;
  GraphCheck& operator=(const GraphCheck&) = delete;

  // The first node whose rows may have other bits in another batch; empty: there was none.
  const std::string& variant() const { return variant_; }
  // Whether all attention was of our own.
  bool has_own_attention() const { return has_own_attention_; }

 private:
  friend struct CheckedNodes;
  std::string variant_;
  bool has_own_attention_;
};

}  // namespace onpolicy::attention
