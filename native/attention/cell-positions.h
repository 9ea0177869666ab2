// Nodes of the engine's graphs that write cells of a pool -> which position each cell holds. In a pool the cells of a sequence lie anywhere;
// attention sums them in the order of positions, so that a row's bits do not depend on where they lie.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "matmul/cpu-backend.h"

namespace onpolicy::attention {

// Of the caches of one context.
class CellPositions {
 public:
  // The nodes of a graph that is about to be computed, in their order. Tokens have the positions of the last rotation.
  void See(const ggml_tensor* node);
  // (cells) of the cache that `cells` is a view of; null: it is no pool, or nothing is known. -1: no graph has written the cell.
  const int32_t* Of(const ggml_tensor* cells) const;

 private:
  std::vector<int32_t> tokens_;  // positions of this graph's; empty: not known yet
  std::unordered_map<const void*, std::vector<int32_t>> positions_;  // by the cache's memory
};

}  // namespace onpolicy::attention
