// A node of a graph -> whether a row of its result has the same bits, whatever other rows are computed with it.
#pragma once
#include <string>

#include "matmul/cpu-backend.h"

namespace onpolicy::attention {

// Empty if it has, else what the node is. `is_ours`: whether this addon computes it.
std::string VariantNode(const ggml_tensor* node, bool is_ours);

}  // namespace onpolicy::attention
