// A buffer type -> installed among those that ggml-cpu asks about weights and nodes, before its own repacking and in place of AMX.
#pragma once
#include <string>

#include "engine-assumptions/matmul/cpu-backend.h"

namespace onpolicy::matmul {

// Returns false and sets `problem` if the engine is not as expected.
bool Hook(ggml_backend_dev_t cpu, ggml_backend_buffer_type_t type, std::string* problem);
void Unhook(ggml_backend_dev_t cpu);

}  // namespace onpolicy::matmul
