// ggml weights -> packed weights whose matmuls are ours: one of ggml-cpu's extra buffer types, as its own repacking is.
#pragma once
#include "matmul/cpu-backend.h"
#include "matmul/kernels.h"

namespace onpolicy::matmul {

// Makes the type, once. `kernels` live as long as the process.
ggml_backend_buffer_type_t MakeBufferType(ggml_backend_dev_t cpu, const Kernels& kernels);

// Operations beside matmuls that this addon computes: asked for every node of a graph, also by threads of the engine. Null: none.
using OperationFunction = ggml::cpu::tensor_traits*(const ggml_tensor* node);
void SetOperations(OperationFunction* operation);

}  // namespace onpolicy::matmul
