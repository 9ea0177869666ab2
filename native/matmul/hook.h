// A buffer type -> one of those that ggml-cpu asks about weights that it is offered and nodes that it computes, before its own.
#pragma once
#include <string>
#include <vector>

#include "matmul/cpu-backend.h"

namespace onpolicy::matmul {

// False with AMX, whose matmuls are ggml's, and where the engine is not as expected: that is the problem.
bool Hook(ggml_backend_dev_t cpu, ggml_backend_buffer_type_t type, std::string* problem);
void Unhook(ggml_backend_dev_t cpu);

// Whether the list holds what ggml-cpu has on these processors.
bool IsExpected(const std::vector<ggml_backend_buffer_type_t>& list, ggml_backend_dev_t cpu, std::string* problem);

}  // namespace onpolicy::matmul
