// Nodes of the engine's graphs that write cells of a pool -> the position that each cell holds. A sequence's cells can lie anywhere in a
// pool; attention sums them in the order of positions, so that a row's bits do not depend on where its cells lie.
#pragma once
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "engine-assumptions/matmul/cpu-backend.h"
#include "engine-assumptions/table/names.h"
#include "engine-assumptions/table/nodes.h"

namespace onpolicy::attention {

// Positions of the cells in all caches of one context.
class CellPositions {
 public:
  // Reads a node of a graph that is about to be computed. Call it for all nodes, in their order. The positions of tokens are those of the
  // last rotation.
  void See(const ggml_tensor* node) {
    if (node->op == GGML_OP_GET_ROWS && std::strcmp(node->src[0]->name, kEmbeddingTable) == 0) tokens_.clear();  // a graph begins
    if (node->op == GGML_OP_ROPE) has_rotations_ = true;
    if (node->op == GGML_OP_ROPE && IsKnown(node)) {
      const auto* first = static_cast<const int32_t*>(node->src[1]->data);
      tokens_.assign(first, first + node->src[1]->ne[0]);
    }
    if (node->op != GGML_OP_SET_ROWS) return;
    const ggml_tensor *cache = Whole(node), *cells = node->src[1];
    if (cache->ne[2] != 1) return;
    if (!IsKnown(node) || cells->type != GGML_TYPE_I64 || cells->ne[0] > static_cast<int64_t>(tokens_.size())) {
      positions_.erase(cache->data);
      return;
    }
    std::vector<int32_t>& positions = positions_[cache->data];
    positions.resize(static_cast<size_t>(cache->ne[1]), -1);
    const auto* cell = static_cast<const int64_t*>(cells->data);
    for (int64_t i = 0; i < cells->ne[0]; ++i)
      if (cell[i] >= 0 && cell[i] < cache->ne[1]) positions[static_cast<size_t>(cell[i])] = tokens_[static_cast<size_t>(i)];
  }

  // Returns the position of each cell of the cache that `cells` is a view of; -1 for a cell that no graph has written. Returns null if the
  // cache is not a pool, or its positions are unknown.
  const int32_t* Of(const ggml_tensor* cells) const {
    const auto found = positions_.find(Whole(cells)->data);
    return found == positions_.end() ? nullptr : found->second.data();
  }

  // Returns true if a graph had a rotation, from which positions are read. Models without one have no known positions.
  bool has_rotations() const { return has_rotations_; }

 private:
  static const ggml_tensor* Whole(const ggml_tensor* tensor) { return tensor->view_src ? tensor->view_src : tensor; }

  bool has_rotations_ = false;
  std::vector<int32_t> tokens_;  // positions of this graph's tokens; empty until they are known
  std::unordered_map<const void*, std::vector<int32_t>> positions_;  // by the cache's memory
};

}  // namespace onpolicy::attention
