// Matmuls with the factors of an adapter by the kernels that serve adapters, so that results equal those of sampling, bit for bit.
#pragma once
#include "trainer/graphs/graph.h"

namespace onpolicy::training {

// Returns true if this processor has kernels for factors of a linear layer of these sizes. Otherwise general matmuls are used.
bool HasAdapterKernels(int64_t in, int64_t out);

// a: (in, rank), x: (in, row) -> (rank, row)
Tensor Narrow(Graph& graph, Tensor a, Tensor x);

// Returns y + scale b low, in place on y, (out, row). b_columns: (out, rank); low: (rank, row)
Tensor PlusWide(Graph& graph, Tensor y, Tensor b_columns, Tensor low, float scale);

}  // namespace onpolicy::training
