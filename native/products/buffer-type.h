// ggml weights -> packed weights whose products are ours: one of ggml-cpu's extra buffer types, as its own repacking is.
#pragma once
#include "products/engine-functions.h"
#include "products/kernels.h"

namespace onpolicy::products {

// Makes the type, once. `functions` and `kernels` live as long as the process.
ggml_backend_buffer_type_t MakeBufferType(ggml_backend_dev_t cpu, const EngineFunctions& functions, const Kernels& kernels);

}  // namespace onpolicy::products
