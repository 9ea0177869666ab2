// Nodes of ggml's graph that its threads compute by parts of their own -> computed here: matmuls with the two factors of an adapter, y = b (a x), and
// recurrent layers, which are gated delta rules and short convolutions. A token has the same bits in any batch, and however a prompt is cut.
#pragma once
#include "attention/kernels.h"
#include "matmul/cpu-backend.h"

namespace onpolicy::attention {

struct SharedKind {
  // Whether a node is one that the kernels can take.
  bool (*takes)(const ggml_tensor* node);
  // Bytes that each thread needs.
  size_t (*thread_bytes)(const ggml_tensor* node);
  // The part of one thread. `memory`: of this thread.
  void (*compute)(const Kernels& kernels, const ggml_tensor* node, int thread, int threads, float* memory);
};

extern const SharedKind kLowRank, kRecurrent;

}  // namespace onpolicy::attention
