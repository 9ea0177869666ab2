// Matmuls of each row with the matrices of its experts, on a CPU: pieces that threads take one after the other, each of one expert.
#pragma once
#include "trainer/graphs/graph.h"

namespace onpolicy::training {

// Fills (outputs, used, tokens). src[0]: (size, outputs, experts), of a type with a format; src[1]: (size, 1 or used, tokens); src[2]:
// (used, tokens) experts. `counter` is one of the graph's.
void ExpertShare(Tensor y, int thread, int threads, void* counter);

// Fills (size, used, tokens), with the transpose of the same weights, of a quantized type. src[1]: (outputs, 1 or used, tokens).
// Needs AVX-512.
void ExpertBackShare(Tensor y, int thread, int threads, void* counter);

// x: (size, 1 or used, tokens), low: (rank, used, tokens), ids: (used, tokens) -> (size, rank, experts), for each expert the sum over its
// rows of x low^T. On a CPU.
Tensor ExpertOuter(Graph& graph, Tensor x, Tensor low, Tensor ids, int64_t experts);

}  // namespace onpolicy::training
