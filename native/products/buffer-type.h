// ggml weights -> packed weights whose products are ours: one of ggml-cpu's extra buffer types, as its own repacking is.
#pragma once
#include "products/engine-functions.h"
#include "products/kernels.h"

namespace onpolicy::products {

// Makes the type, once. `functions` and `kernels` live as long as the process.
ggml_backend_buffer_type_t MakeBufferType(ggml_backend_dev_t cpu, const EngineFunctions& functions, const Kernels& kernels);

// Operations beside products that this addon computes: asked for every node of a graph, also by threads of the engine. Null: none.
using OperationFunction = ggml::cpu::tensor_traits*(const ggml_tensor* node);
void SetOperations(OperationFunction* operation);

}  // namespace onpolicy::products
