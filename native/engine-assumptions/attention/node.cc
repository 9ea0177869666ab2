#include "engine-assumptions/attention/node.h"

#include <cstring>

#include "engine-assumptions/table/nodes.h"

namespace onpolicy::attention {
namespace {

std::optional<CellType> CellTypeOf(ggml_type type) {
  if (type == GGML_TYPE_F16) return CellType::kF16;
  if (type == GGML_TYPE_Q8_0) return CellType::kQ8_0;
  if (type == GGML_TYPE_F32) return CellType::kF32;
  return std::nullopt;
}

float Parameter(const ggml_tensor* node, int index) {
  float value;
  std::memcpy(&value, node->op_params + index, sizeof(value));
  return value;
}

bool HasDistanceBias(const ggml_tensor* node) { return Parameter(node, 1) != 0; }  // ALiBi

bool FitsSinks(const ggml_tensor* sinks) { return !sinks || (sinks->type == GGML_TYPE_F32 && sinks->nb[0] == sizeof(float)); }

bool FitsKernels(const ggml_tensor* q, const ggml_tensor* k, const ggml_tensor* v) {
  const std::optional<CellType> type = CellTypeOf(k->type);
  const int64_t unit = type == CellType::kQ8_0 ? 2 * kLanes : kLanes;
  return type && k->type == v->type && q->type == GGML_TYPE_F32 && q->nb[0] == sizeof(float) && q->ne[0] == k->ne[0] &&
         k->ne[0] % unit == 0 && v->ne[0] % unit == 0 && k->ne[1] == v->ne[1] && k->ne[1] % kBlockCells == 0 &&
         k->ne[2] == v->ne[2] && q->ne[2] % k->ne[2] == 0 && q->ne[3] == k->ne[3] && q->ne[3] == v->ne[3];
}

bool IsPacked(const ggml_tensor* cells) {
  const size_t bytes = cells->type == GGML_TYPE_F32 ? 4 : cells->type == GGML_TYPE_F16 ? 2 : 34;
  return cells->nb[0] == bytes;
}

const ggml_tensor* Unrounded(const ggml_tensor* cells) { return IsRounding(cells) ? cells->src[0] : cells; }

bool FitsMask(const ggml_tensor* mask, const ggml_tensor* q, const ggml_tensor* k) {
  return !mask || (mask->type == GGML_TYPE_F16 && mask->nb[0] == 2 && mask->ne[0] >= k->ne[1] && mask->ne[1] >= q->ne[1] &&
                   mask->ne[2] == 1 && (mask->ne[3] == 1 || mask->ne[3] == q->ne[3]));
}

}  // namespace

bool IsRounding(const ggml_tensor* node) {
  return node->op == GGML_OP_CPY && node->type == GGML_TYPE_F16 && node->src[0]->type == GGML_TYPE_F32 && UnknownPart(node).empty();
}

std::optional<Attention> AttentionOf(const ggml_tensor* node) {
  if (node->op != GGML_OP_FLASH_ATTN_EXT || !IsKnown(node) || HasDistanceBias(node) || !FitsSinks(node->src[4])) return std::nullopt;
  const ggml_tensor *q = node->src[0], *k = Unrounded(node->src[1]), *v = Unrounded(node->src[2]), *mask = node->src[3];
  if (!FitsKernels(q, k, v) || !IsPacked(k) || !IsPacked(v) || !FitsMask(mask, q, k)) return std::nullopt;
  const auto bytes = [](const ggml_tensor* tensor) { return static_cast<const uint8_t*>(tensor->data); };
  Attention a{};
  a.q = bytes(q);
  a.k = bytes(k);
  a.v = bytes(v);
  a.mask = mask ? bytes(mask) : nullptr;
  a.y = static_cast<float*>(node->data);
  a.q_token = q->nb[1], a.q_head = q->nb[2], a.q_stream = q->nb[3];
  a.k_cell = k->nb[1], a.k_head = k->nb[2], a.k_stream = k->nb[3];
  a.v_cell = v->nb[1], a.v_head = v->nb[2], a.v_stream = v->nb[3];
  if (mask) a.mask_token = mask->nb[1], a.mask_stream = mask->ne[3] == 1 ? 0 : mask->nb[3];
  a.streams = q->ne[3], a.tokens = q->ne[1], a.heads = q->ne[2], a.kv_heads = k->ne[2], a.cells = k->ne[1];
  a.k_width = static_cast<int>(k->ne[0]);
  a.v_width = static_cast<int>(v->ne[0]);
  a.type = *CellTypeOf(k->type);
  a.scale = Parameter(node, 0);
  a.cap = Parameter(node, 2);
  if (const ggml_tensor* sinks = node->src[4]) a.sinks = static_cast<const float*>(sinks->data);
  return a;
}

}  // namespace onpolicy::attention
