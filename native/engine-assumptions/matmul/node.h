// Nodes of ggml's graph with packed weights -> their matmuls, run by all of ggml's threads.
#pragma once
#include "engine-assumptions/matmul/cpu-backend.h"
#include "kernels/matmul/matmul.h"

namespace onpolicy::matmul {

inline bool IsMatmul(const ggml_tensor* node) { return node->op == GGML_OP_MUL_MAT || node->op == GGML_OP_MUL_MAT_ID; }

// Returns the format of packed weights, or null if ggml computes matmuls with them.
const Format* PackedFormat(const ggml_tensor* weights);

// Number of matrices (of experts or heads) in a tensor that has a format, and the matrix at an index. They lie one after the other.
inline int64_t MatrixCount(const ggml_tensor* weights) { return weights->ne[2] * weights->ne[3]; }
PackedMatrix MatrixOf(const ggml_tensor* weights, int64_t index);

// Returns the object that ggml calls to compute a matmul.
ggml::cpu::tensor_traits* NodeTraits(const ggml_tensor* node);

// Sets the kernels. Call it once, before the other functions. The kernels must live as long as the process.
void SetNodeKernels(const Kernels& kernels);

}  // namespace onpolicy::matmul
