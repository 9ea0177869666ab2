// Rotated queries, keys and values of a packed row -> attention output, and the gradients. The forward pass uses the kernels that serve
// models if they support it: a token's result then equals, bit for bit, that of sampling from a 32-bit cache. Otherwise it computes one block
// of queries at a time.
#pragma once
#include "trainer/runs.h"
#include "trainer/weights/matmul.h"
#include "trainer/weights/weights.h"

namespace onpolicy::training {

// The plan of one row, with its masks on the device.
struct RowAttention {
  AttentionPlan plan;
  Slot masks;
  std::vector<TokenRun> runs;  // only if attention is fused in the forward pass
};

// Returns true if this device computes fused attention for this model. Otherwise attention consists of matmuls.
bool HasFusedAttention(const Device& device, const Shape& shape);

// sinks: (heads), or null. query: (head size, heads, row); key, value: (head size, kv heads, row). Fills `output`, (head size, heads, row).
// `attention` must outlive the graph.
void AttentionForward(Graph& graph, Matmuls& matmuls, const AttentionShape& shape, const RowAttention& attention, Tensor sinks, Tensor query, Tensor key, Tensor value, Tensor output);

// Adds operations to the graph that fill `query_gradient` and add to the zeroed `key_gradient` and `value_gradient`.
void AttentionBackward(Graph& graph, Matmuls& matmuls, const AttentionShape& shape, const RowAttention& attention, Tensor sinks, Tensor query, Tensor key, Tensor value, Tensor output_gradient, Tensor query_gradient,
                       Tensor key_gradient, Tensor value_gradient);

}  // namespace onpolicy::training
