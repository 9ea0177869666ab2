// A node of ggml's graph -> attention that this addon's kernels compute.
#pragma once
#include <optional>

#include "engine-assumptions/matmul/cpu-backend.h"
#include "kernels/attention/attention.h"

namespace onpolicy::attention {

// Returns true if a node rounds 32-bit cells to 16 bits, the widest that the engine's own attention takes.
bool IsRounding(const ggml_tensor* node);

// Returns nothing if ggml has to compute the node. Rounded cells are read before rounding.
std::optional<Attention> AttentionOf(const ggml_tensor* node);

}  // namespace onpolicy::attention
