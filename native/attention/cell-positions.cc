#include "attention/cell-positions.h"

#include <cstring>

namespace onpolicy::attention {
namespace {

const ggml_tensor* Whole(const ggml_tensor* tensor) { return tensor->view_src ? tensor->view_src : tensor; }

}  // namespace

void CellPositions::See(const ggml_tensor* node) {
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

const int32_t* CellPositions::Of(const ggml_tensor* cells) const {
  const auto found = positions_.find(Whole(cells)->data);
  return found == positions_.end() ? nullptr : found->second.data();
}

}  // namespace onpolicy::attention
