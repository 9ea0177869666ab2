// Nodes of recurrent layers in ggml's graph -> computed here: the gated delta rule and short convolutions. A sequence's tokens are added one
// after the other, so they have the same bits however a prompt is cut.
#pragma once
#include "attention/kernels.h"
#include "matmul/cpu-backend.h"

namespace onpolicy::attention {

// Whether a node is one that the kernels can take.
bool IsRecurrent(const ggml_tensor* node);

// Bytes that each thread needs.
size_t RecurrentThreadBytes(const ggml_tensor* node);

// The share of one thread. `memory`: of this thread.
void RecurrentShare(const Kernels& kernels, const ggml_tensor* node, int thread, int threads, float* memory);

}  // namespace onpolicy::attention
