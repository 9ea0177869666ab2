// The engine's CPU device -> matmuls of our own in it, after a check that they fit it.
#pragma once
#include <ggml-backend.h>

#include <string>

namespace onpolicy::matmul {

struct Installation {
  const char* kernels = nullptr;  // the name of a set; null: all matmuls are ggml's
  std::string problem;            // what was unexpected; empty: nothing, the processor has other instructions
};

// Once per process, before the first model is loaded: the engine reads the list of its buffer types only once.
const Installation& Install(ggml_backend_dev_t cpu);

// What Install found.
const Installation& Installed();

}  // namespace onpolicy::matmul
