// Rotated queries, keys and values of a packed row -> attention output, and the gradients. Where attention is not fused, one block of
// queries at a time.
#pragma once
#include "weights/matmul.h"
#include "trainer/row.h"
#include "trainer/token-runs.h"
#include "weights/weights.h"

namespace onpolicy::training {

// The plan of one row, with its masks on the device.
struct RowAttention {
  AttentionPlan plan;
  Slot masks;
  std::vector<TokenRun> runs;  // of a row whose attention is fused on the way forward
};

// sinks: (heads), or null. query: (head size, heads, row); key, value: (head size, kv heads, row). Fills `output`, (head size, heads, row).
void AttentionForward(Graph& graph, Matmuls& matmuls, const AttentionShape& shape, const RowAttention& attention, Tensor sinks, Tensor query, Tensor key, Tensor value, Tensor output);

// Adds to the graph what fills `query_gradient` and adds to the zeroed `key_gradient` and `value_gradient`.
void AttentionBackward(Graph& graph, Matmuls& matmuls, const AttentionShape& shape, const RowAttention& attention, Tensor sinks, Tensor query, Tensor key, Tensor value, Tensor output_gradient, Tensor query_gradient,
                       Tensor key_gradient, Tensor value_gradient);

}  // namespace onpolicy::training
