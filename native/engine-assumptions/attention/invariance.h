// A node of a graph -> whether a row of its result has the same bits regardless of the other rows computed with it.
#pragma once
#include <string>

#include "engine-assumptions/matmul/cpu-backend.h"

namespace onpolicy::attention {

// Returns an empty string if it has, else a description of the node. `is_ours`: this addon computes the node.
std::string VariantNode(const ggml_tensor* node, bool is_ours);

}  // namespace onpolicy::attention
