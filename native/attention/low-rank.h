// Matmuls with the two factors of an adapter, y = b (a x), as the engine's threads share them. A token has the same bits in any batch.
#pragma once
#include "attention/kernels.h"
#include "matmul/cpu-backend.h"

namespace onpolicy::attention {

// Whether a node of the engine's graph is such a matmul that the kernels can take.
bool IsLowRank(const ggml_tensor* node);

// Bytes that each thread needs.
size_t LowRankThreadBytes(const ggml_tensor* node);

// The share of one thread. `memory`: of this thread.
void LowRankShare(const Kernels& kernels, const ggml_tensor* node, int thread, int threads, float* memory);

}  // namespace onpolicy::attention
