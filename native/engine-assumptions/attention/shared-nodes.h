// Nodes of ggml's graph that its threads share -> computed here: matmuls with the two factors of an adapter, y = b (a x), and recurrent
// layers (gated delta rules and short convolutions). A token has the same bits in any batch, and however a prompt is split.
#pragma once
#include "engine-assumptions/matmul/cpu-backend.h"
#include "kernels/attention/kernels.h"

namespace onpolicy::attention {

struct SharedKind {
  // Returns true if the kernels can compute the node.
  bool (*takes)(const ggml_tensor* node);
  // Returns the bytes of memory that each thread needs.
  size_t (*thread_bytes)(const ggml_tensor* node);
  // Computes one thread's share. `memory` belongs to this thread.
  void (*compute)(const Kernels& kernels, const ggml_tensor* node, int thread, int threads, float* memory);
};

extern const SharedKind kLowRank, kRecurrent;

// Returns true if a node is a matmul with a factor of an adapter, of any type.
bool HasFactor(const ggml_tensor* node);

}  // namespace onpolicy::attention
