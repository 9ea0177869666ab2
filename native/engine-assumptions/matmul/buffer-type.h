// ggml weights -> packed weights whose matmuls this addon computes. It is one of ggml-cpu's extra buffer types, as ggml's repacking is.
#pragma once
#include <functional>

#include "engine-assumptions/matmul/cpu-backend.h"
#include "kernels/matmul/kernels.h"

namespace onpolicy::matmul {

// Creates the type. Call it once. `kernels` must live as long as the process.
ggml_backend_buffer_type_t MakeBufferType(ggml_backend_dev_t cpu, const Kernels& kernels);

// Operations other than matmuls that this addon computes. Called for every node of a graph, also on threads of the engine. Returns null for
// a node that ggml computes.
using OperationFunction = ggml::cpu::tensor_traits*(const ggml_tensor* node);
void SetOperations(OperationFunction* operation);

// Returns true if a graph of a context that `plan` creates on this thread has a matmul of packed weights with a source or a parameter that
// this library does not know.
bool HasUnknownMatmul(const std::function<void()>& plan);

}  // namespace onpolicy::matmul
