// A node of ggml's graph -> attention of our own.
#pragma once
#include <optional>

#include "attention/attention.h"
#include "products/engine-functions.h"

namespace onpolicy::attention {

// Nothing where ggml has to compute the node.
std::optional<Attention> AttentionOf(const ggml_tensor* node);

}  // namespace onpolicy::attention
