// Matmuls with the factors of an adapter.
#include <algorithm>
#include <string_view>

#include "engine-assumptions/attention/shared-nodes.h"
#include "engine-assumptions/table/names.h"

namespace onpolicy::attention {
namespace {

constexpr int64_t kRowsAtOnce = 4, kTokensAtOnce = 16;  // size of one piece of work

bool IsNarrow(const ggml_tensor* node) { return std::string_view(node->src[0]->name).ends_with(kFactorA); }
bool IsWide(const ggml_tensor* node) { return std::string_view(node->src[0]->name).ends_with(kFactorB); }

bool IsFloats(const ggml_tensor* matrix) {
  return matrix->type == GGML_TYPE_F32 && matrix->nb[0] == sizeof(float) && matrix->nb[1] % sizeof(float) == 0 && matrix->ne[2] == 1 &&
         matrix->ne[3] == 1;
}

const float* Floats(const ggml_tensor* tensor) { return static_cast<const float*>(tensor->data); }

Rows RowsOf(const ggml_tensor* x, int64_t first, int64_t end) {
  const size_t stride = x->nb[1] / sizeof(float);
  return {Floats(x) + static_cast<size_t>(first) * stride, stride, end - first};
}

// a: (size, rank); x: (size, tokens)
void NarrowShare(const Kernels& kernels, const ggml_tensor* node, int thread, int threads) {
  const ggml_tensor *a = node->src[0], *x = node->src[1];
  const int64_t size = a->ne[0], rank = a->ne[1], tokens = x->ne[1];
  const int64_t row_parts = (rank + kRowsAtOnce - 1) / kRowsAtOnce, token_parts = (tokens + kTokensAtOnce - 1) / kTokensAtOnce;
  for (int64_t piece = thread; piece < row_parts * token_parts; piece += threads) {
    const int64_t row = piece % row_parts * kRowsAtOnce, token = piece / row_parts * kTokensAtOnce;
    float* y = static_cast<float*>(node->data) + token * rank + row;
    kernels.narrow(Floats(a) + row * size, size, static_cast<int>(std::min(kRowsAtOnce, rank - row)),
                   RowsOf(x, token, std::min(tokens, token + kTokensAtOnce)), y, static_cast<size_t>(rank));
  }
}

// b: (rank, outputs); h: (rank, tokens). `columns`: (kLanes, rank) of b.
void WideShare(const Kernels& kernels, const ggml_tensor* node, int thread, int threads, float* columns) {
  const ggml_tensor *b = node->src[0], *h = node->src[1];
  const int64_t rank = b->ne[0], outputs = b->ne[1], strips = outputs / kLanes;
  for (int64_t strip = strips * thread / threads; strip < strips * (thread + 1) / threads; ++strip) {
    const float* rows = Floats(b) + strip * kLanes * rank;
    for (int64_t r = 0; r < rank; ++r)
      for (int64_t i = 0; i < kLanes; ++i) columns[r * kLanes + i] = rows[i * rank + r];
    kernels.widen(columns, kLanes, rank, RowsOf(h, 0, h->ne[1]), static_cast<float*>(node->data) + strip * kLanes,
                  static_cast<size_t>(outputs));
  }
}

bool IsLowRank(const ggml_tensor* node) {
  if (node->op != GGML_OP_MUL_MAT || !IsFloats(node->src[0]) || !IsFloats(node->src[1])) return false;
  const ggml_tensor* factor = node->src[0];
  if (factor->nb[1] != static_cast<size_t>(factor->ne[0]) * sizeof(float)) return false;
  return (IsNarrow(node) && factor->ne[0] % kLanes == 0) || (IsWide(node) && factor->ne[1] % kLanes == 0);
}

size_t LowRankThreadBytes(const ggml_tensor* node) {
  return IsWide(node) ? static_cast<size_t>(node->src[0]->ne[0]) * kLanes * sizeof(float) : 0;
}

void LowRankShare(const Kernels& kernels, const ggml_tensor* node, int thread, int threads, float* memory) {
  if (IsWide(node)) WideShare(kernels, node, thread, threads, memory);
  else NarrowShare(kernels, node, thread, threads);
}

}  // namespace

bool HasFactor(const ggml_tensor* node) {
  return (node->op == GGML_OP_MUL_MAT || node->op == GGML_OP_MUL_MAT_ID) && (IsNarrow(node) || IsWide(node));
}

const SharedKind kLowRank = {IsLowRank, LowRankThreadBytes, LowRankShare};

}  // namespace onpolicy::attention
