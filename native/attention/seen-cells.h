// Masks of a graph -> bits of the cells that each token sees, once for all layers.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "attention/attention.h"

namespace onpolicy::attention {

// Bits of the cells that the tokens [first, first + count) of a stream see, as the mask or `sight` says: (count, cells / kBlockCells).
void ReadSeen(const Attention& attention, const Kernels& kernels, int64_t stream, int64_t first, int64_t count, uint64_t* bits);

// Those of all tokens.
struct SeenCells {
  std::vector<uint64_t> bits;            // (streams or 1, tokens, cells / kBlockCells)
  int64_t first_word = 0, end_word = 0;  // of a token: others are zero for all tokens
};

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
