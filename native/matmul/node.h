// Nodes of ggml's graph with packed weights -> their matmuls, run by all of ggml's threads.
#pragma once
#include "matmul/cpu-backend.h"
#include "matmul/matmul.h"

namespace onpolicy::matmul {

inline bool IsMatmul(const ggml_tensor* node) { return node->op == GGML_OP_MUL_MAT || node->op == GGML_OP_MUL_MAT_ID; }

// Null where matmuls with these weights are ggml's.
const Format* PackedFormat(const ggml_tensor* weights);

// Of a tensor with a format. Its matrices lie one after the other: those of experts or heads.
inline int64_t MatrixCount(const ggml_tensor* weights) { return weights->ne[2] * weights->ne[3]; }
PackedMatrix MatrixOf(const ggml_tensor* weights, int64_t index);

// What ggml calls for a matmul.
ggml::cpu::tensor_traits* NodeTraits(const ggml_tensor* node);

// Once, before the others. They live as long as the process.
void SetNodeKernels(const Kernels& kernels);

}  // namespace onpolicy::matmul
