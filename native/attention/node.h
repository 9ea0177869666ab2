// A node of ggml's graph -> attention of our own.
#pragma once
#include <optional>

#include "attention/attention.h"
#include "matmul/cpu-backend.h"

namespace onpolicy::attention {

// Whether a node rounds cells of 32 bits to 16. The engine's own attention takes no wider ones.
bool IsRounding(const ggml_tensor* node);

// Nothing where ggml has to compute the node. Rounded cells are read as they were before.
std::optional<Attention> AttentionOf(const ggml_tensor* node);

}  // namespace onpolicy::attention
