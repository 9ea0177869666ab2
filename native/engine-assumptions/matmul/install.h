// The engine's CPU device -> this addon's matmuls installed in it, after a check that they agree with the engine's.
#pragma once
#include <ggml-backend.h>

namespace onpolicy::matmul {

// Call once per process, before the first model is loaded, because the engine reads the list of its buffer types only once. Returns true if
// this addon's matmuls are installed.
bool Install(ggml_backend_dev_t cpu);

// Returns the name of the set of kernels. Null: all matmuls are ggml's.
const char* Installed();

}  // namespace onpolicy::matmul
