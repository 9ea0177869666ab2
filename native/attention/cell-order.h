// Which cells some tokens see -> blocks of these cells, in the order in which attention sums them: once for all layers, heads and threads.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "attention/attention.h"

namespace onpolicy::attention {

// Cells of some neighbouring tokens, which are read together.
struct CellBlock {
  static constexpr int64_t kAll = -1;

  int64_t span;                // to whose sums it adds
  int first_token, end_token;  // of the stream
  int first, end;              // places of the block: what lies before `first` and from `end` on, nobody sees
  size_t cells;                // where its `end` cells are
  int64_t seen;                // where bits of the places that each token sees are; kAll: all tokens see all cells
};

// Blocks of some neighbouring tokens, those of a token by span.
struct CellOrder {
  // Tokens and blocks from those of the cut before on: they share no block with others.
  struct Cut {
    int end_token;
    size_t end_block, end_cell;
  };

  std::vector<CellBlock> blocks;
  std::vector<int32_t> cells;  // as they lie in k and v
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

// Of all tokens of all streams.
struct CellOrders {
  std::vector<CellOrder> orders;  // (streams or 1, token groups of a Division)
  std::vector<TokenGroup> groups;
  int64_t spans = 0, most_tokens = 0;  // of the group that has most
};

// The order of a group's tokens, as the mask or `sight` says. `order` lends its memory, and is the group's then.
void SetOrder(const Attention& attention, const Kernels& kernels, TokenGroup* group, CellOrder* order);

// Of the masks of the graph that a thread plans, and then computes.
class GraphOrders {
 public:
  // While the graph is planned: its inputs are set. `attention` has a mask.
  const CellOrders* Of(const Attention& attention, const Kernels& kernels, int threads);
  // The next node that is planned is of another graph.
  void EndGraph() { is_ended_ = true; }

 private:
  struct Entry {
    int64_t graph = 0;
    bool has_positions = false;
    CellOrders orders;
  };
  int64_t graph_ = 0;
  bool is_ended_ = true;
  std::unordered_multimap<const uint8_t*, Entry> entries_;  // by the mask's memory; those of earlier graphs lend theirs
};

}  // namespace onpolicy::attention
