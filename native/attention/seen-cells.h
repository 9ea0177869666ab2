// Masks of a graph -> bits of the cells that each token sees, once for all layers.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "attention/attention.h"

namespace onpolicy::attention {

// Of the masks of the graph that a thread plans, and then computes.
class GraphMasks {
 public:
  // While the graph is planned: its inputs are set. `attention` has a mask.
  const SeenCells* Of(const Attention& attention, const Kernels& kernels);
  // The next node that is planned is of another graph.
  void EndGraph() { is_ended_ = true; }

 private:
  struct Entry {
    int64_t graph = 0;
    SeenCells cells;
  };
  int64_t graph_ = 0;
  bool is_ended_ = true;
  std::unordered_map<const uint8_t*, Entry> entries_;  // by the mask's memory; those of earlier graphs lend theirs
};

}  // namespace onpolicy::attention
