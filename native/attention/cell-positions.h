// Nodes of the engine's graphs that write cells of a pool -> which position each cell holds. In a pool the cells of a sequence lie anywhere;
// attention sums them in the order of positions, so that a row's bits do not depend on where they lie.
#pragma once
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "matmul/cpu-backend.h"

namespace onpolicy::attention {

// Of the caches of one context.
class CellPositions {
 public:
  // The nodes of a graph that is about to be computed, in their order. Tokens have the positions of the last rotation.
  void See(const ggml_tensor* node) {
    if (node->op == GGML_OP_GET_ROWS && std::strcmp(node->src[0]->name, "token_embd.weight") == 0) tokens_.clear();  // a graph begins
    if (node->op == GGML_OP_ROPE) {
      const auto* first = static_cast<const int32_t*>(node->src[1]->data);
      tokens_.assign(first, first + node->src[1]->ne[0]);
    }
    if (node->op != GGML_OP_SET_ROWS) return;
    const ggml_tensor *cache = Whole(node), *cells = node->src[1];
    if (cache->ne[2] != 1 || cells->type != GGML_TYPE_I64 || cells->ne[0] > static_cast<int64_t>(tokens_.size())) return;
    std::vector<int32_t>& positions = positions_[cache->data];
    positions.resize(static_cast<size_t>(cache->ne[1]), -1);
    const auto* cell = static_cast<const int64_t*>(cells->data);
    for (int64_t i = 0; i < cells->ne[0]; ++i)
      if (cell[i] >= 0 && cell[i] < cache->ne[1]) positions[static_cast<size_t>(cell[i])] = tokens_[static_cast<size_t>(i)];
  }

  // (cells) of the cache that `cells` is a view of; null: it is no pool, or nothing is known. -1: no graph has written the cell.
  const int32_t* Of(const ggml_tensor* cells) const {
    const auto found = positions_.find(Whole(cells)->data);
    return found == positions_.end() ? nullptr : found->second.data();
  }

 private:
  static const ggml_tensor* Whole(const ggml_tensor* tensor) { return tensor->view_src ? tensor->view_src : tensor; }

  std::vector<int32_t> tokens_;  // positions of this graph's; empty: not known yet
  std::unordered_map<const void*, std::vector<int32_t>> positions_;  // by the cache's memory
};

}  // namespace onpolicy::attention
