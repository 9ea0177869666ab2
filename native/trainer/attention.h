// Rotated queries, keys and values of a packed row -> attention output, and the gradients. On the way forward by the kernels that serve models,
// where they can: a token then has the bits that it has when it is sampled from a cache of 32 bits. Else one block of queries at a time.
#pragma once
#include "trainer/runs.h"
#include "weights/matmul.h"
#include "weights/weights.h"

namespace onpolicy::training {

// The plan of one row, with its masks on the device.
struct RowAttention {
  AttentionPlan plan;
  Slot masks;
  std::vector<TokenRun> runs;  // of a row whose attention is fused on the way forward
};

// Whether this device computes fused attention for this model. If not, attention is made of matmuls.
bool HasFusedAttention(const Device& device, const Shape& shape);

// sinks: (heads), or null. query: (head size, heads, row); key, value: (head size, kv heads, row). Fills `output`, (head size, heads, row).
// `attention` has to outlive the graph.
void AttentionForward(Graph& graph, Matmuls& matmuls, const AttentionShape& shape, const RowAttention& attention, Tensor sinks, Tensor query, Tensor key, Tensor value, Tensor output);

// Adds to the graph what fills `query_gradient` and adds to the zeroed `key_gradient` and `value_gradient`.
void AttentionBackward(Graph& graph, Matmuls& matmuls, const AttentionShape& shape, const RowAttention& attention, Tensor sinks, Tensor query, Tensor key, Tensor value, Tensor output_gradient, Tensor query_gradient,
                       Tensor key_gradient, Tensor value_gradient);

}  // namespace onpolicy::training
