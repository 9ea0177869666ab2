// Which cells some tokens see -> blocks of these cells, in the order in which attention sums them: once for all layers, heads and threads.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attention/attention.h"

namespace onpolicy::attention {

// Cells of some neighbouring tokens, which are read together.
struct CellBlock {
  static constexpr int64_t kAll = -1;

  int64_t span;                // to whose sums it adds
  int first_token, end_token;  // of the group
  int first, end;              // places of the block: what lies before `first` and from `end` on, nobody sees
  size_t cells;                // where its `end` cells are
  int64_t seen;                // where bits of the places that each token sees are; kAll: all tokens see all cells
};

// Of a group of tokens.
struct CellOrder {
  std::vector<CellBlock> blocks;  // those of a token: by span
  std::vector<int32_t> cells;     // as they lie in k and v
  std::vector<uint64_t> seen;
};

// Of all groups of all streams.
struct CellOrders {
  int64_t groups = 0;             // of a stream, see TokenGroups
  int64_t spans = 0;              // of the order that has most
  std::vector<CellOrder> orders;  // (streams or 1, groups)
};

// Tokens [first, second) of group `group`.
std::pair<int64_t, int64_t> TokensOf(const Attention& attention, int64_t groups, int64_t group);

// The order of some tokens of a stream, as the mask or `sight` says. `order` lends its memory.
void SetOrder(const Attention& attention, const Kernels& kernels, int64_t stream, std::pair<int64_t, int64_t> tokens, CellOrder* order);

// Of the masks of the graph that a thread plans, and then computes.
class GraphOrders {
 public:
  // While the graph is planned: its inputs are set. `attention` has a mask.
  const CellOrders* Of(const Attention& attention, const Kernels& kernels, int64_t groups);
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
