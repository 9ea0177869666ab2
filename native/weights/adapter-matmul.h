// Matmuls with the factors of an adapter by the kernels that serve adapters: a token has the bits that it has when it is sampled.
#pragma once
#include "graphs/graph.h"

namespace onpolicy::training {

// Whether this processor has kernels for factors of a linear layer of these sizes. If not, they are matrices like any other.
bool HasAdapterKernels(int64_t in, int64_t out);

// a: (in, rank), x: (in, row) -> (rank, row)
Tensor Narrow(Graph& graph, Tensor a, Tensor x);

// y + scale b low, in place on y, (out, row). b_columns: (out, rank); low: (rank, row)
Tensor PlusWide(Graph& graph, Tensor y, Tensor b_columns, Tensor low, float scale);

}  // namespace onpolicy::training
