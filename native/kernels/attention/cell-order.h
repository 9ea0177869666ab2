// The cells that some tokens see -> blocks of these cells, in the order in which attention sums them. Computed once for all layers, heads
// and threads.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "kernels/attention/attention.h"

namespace onpolicy::attention {

// Cells that some neighbouring tokens read together.
struct CellBlock {
  static constexpr int64_t kAll = -1;

  int64_t span;                // index of the span to whose sums it adds
  int first_token, end_token;  // of the stream
  int first, end;              // no token sees the places of the block before `first` and from `end` on
  size_t cells;                // offset of its `end` cells
  int64_t seen;                // offset of the bits of the places that each token sees; kAll: all tokens see all cells
};

// Blocks of some neighbouring tokens. The blocks of a token are ordered by span.
struct CellOrder {
  // End of tokens and blocks that follow the previous cut and share no block with others.
  struct Cut {
    int end_token;
    size_t end_block, end_cell;
  };

  std::vector<CellBlock> blocks;
  std::vector<int32_t> cells;  // indices in k and v
  std::vector<uint64_t> seen;
  std::vector<Cut> cuts;
};

// Tokens of one task.
struct TokenGroup {
  int64_t stream;
  int first_token, end_token;
  const CellOrder* order = nullptr;
  size_t first_block = 0, end_block = 0;
};

// The orders of all tokens of all streams.
struct CellOrders {
  std::vector<CellOrder> orders;  // (streams or 1, token groups of a Division)
  std::vector<TokenGroup> groups;
  int64_t spans = 0, most_tokens = 0;  // of the largest group
};

// Computes the order of a group's tokens by the mask or `sight`. `order` provides the memory, and becomes the order of the group.
void SetOrder(const Attention& attention, const Kernels& kernels, TokenGroup* group, CellOrder* order);

// The cell orders of the masks of a graph that a thread plans and then computes.
class GraphOrders {
 public:
  // Called while the graph is planned, when its inputs are set. `attention` has a mask.
  const CellOrders* Of(const Attention& attention, const Kernels& kernels, int threads);
  // Called if the next planned node belongs to another graph.
  void EndGraph() { is_ended_ = true; }

 private:
  struct Entry {
    int64_t graph = 0;
    bool has_positions = false;
    CellOrders orders;
  };
  int64_t graph_ = 0;
  bool is_ended_ = true;
  std::unordered_multimap<const uint8_t*, Entry> entries_;  // by the mask's memory; entries of earlier graphs are reused
};

}  // namespace onpolicy::attention
