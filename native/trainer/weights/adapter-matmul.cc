#include "trainer/weights/adapter-matmul.h"

#include <algorithm>

#include "kernels/attention/kernels.h"
#include "trainer/graphs/share.h"

namespace onpolicy::training {
namespace {

namespace at = attention;

constexpr int64_t kTokensAtOnce = 16;

struct Wide {
  float scale;
  std::atomic<int64_t>* next;
};

const float* Floats(Tensor tensor) { return static_cast<const float*>(tensor->data); }

// Fills (rank, row). src[0]: (in, rank); src[1]: (in, row).
void NarrowShare(Tensor low, int, int, void* counter) {
  const Tensor a = low->src[0], x = low->src[1];
  const int64_t rank = low->ne[0], tokens = low->ne[1];
  const size_t stride = x->nb[1] / sizeof(float);
  Share(*static_cast<std::atomic<int64_t>*>(counter), (tokens + kTokensAtOnce - 1) / kTokensAtOnce, [&](int64_t piece) {
    const int64_t first = piece * kTokensAtOnce;
    const at::Rows rows{Floats(x) + static_cast<size_t>(first) * stride, stride, std::min(kTokensAtOnce, tokens - first)};
    at::BestKernels()->narrow(Floats(a), a->ne[0], static_cast<int>(rank), rows, static_cast<float*>(low->data) + first * rank,
                              static_cast<size_t>(rank));
  });
}

// The matmul is rounded before the sum, as in the engine.
void AddScaled(float* y, const float* x, float scale) {
  for (int i = 0; i < at::kLanes; ++i) y[i] += x[i] * scale;
}

// Works in place on (out, row). src[1]: (out, rank); src[2]: (rank, row).
void PlusWideShare(Tensor y, int, int, void* data) {
  const Wide& wide = *static_cast<const Wide*>(data);
  const Tensor b = y->src[1], low = y->src[2];
  const int64_t out = y->ne[0], rank = low->ne[0], tokens = y->ne[1];
  const at::Rows rows{Floats(low), static_cast<size_t>(rank), tokens};
  auto* strip = reinterpret_cast<float*>(ThreadMemory(static_cast<size_t>(tokens) * at::kLanes * sizeof(float)));
  Share(*wide.next, out / at::kLanes, [&](int64_t index) {
    const int64_t first = index * at::kLanes;
    at::BestKernels()->widen(Floats(b) + first, static_cast<size_t>(out), rank, rows, strip, at::kLanes);
    for (int64_t token = 0; token < tokens; ++token)
      AddScaled(static_cast<float*>(y->data) + token * out + first, strip + token * at::kLanes, wide.scale);
  });
}

}  // namespace

bool HasAdapterKernels(int64_t in, int64_t out) { return at::BestKernels() && in % at::kLanes == 0 && out % at::kLanes == 0; }

Tensor Narrow(Graph& graph, Tensor a, Tensor x) {
  return graph.Custom({a->ne[1], x->ne[1], 1}, {a, x}, NarrowShare, graph.Counter());
}

Tensor PlusWide(Graph& graph, Tensor y, Tensor b_columns, Tensor low, float scale) {
  return graph.Custom(y, {b_columns, low}, PlusWideShare, graph.Keep(Wide{scale, graph.Counter()}));
}

}  // namespace onpolicy::training
