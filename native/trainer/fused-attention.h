// Attention of a packed row by the kernels that serve models: a token has the bits that it has when it is sampled from a cache of 32 bits.
#pragma once
#include "graphs/graph.h"
#include "weights/shape.h"
#include "trainer/token-runs.h"

namespace onpolicy::training {

// Whether this device computes it for this model. If not, attention is made of matmuls.
bool HasFusedAttention(const Device& device, const Shape& shape);

// query, output: (head size, heads, row); key, value: (head size, kv heads, row). Fills `output`. `runs` has to outlive the graph.
void FusedAttention(Graph& graph, const AttentionShape& shape, const std::vector<TokenRun>& runs, Tensor sinks, Tensor query, Tensor key, Tensor value,
                    Tensor output);

}  // namespace onpolicy::training
