// The speed of matmuls on this machine: the yardstick for a trainer's speed.
#pragma once
#include <string>

#include "base/status.h"
#include "graphs/device.h"

namespace onpolicy::training {

// Times one matmul of an (in, out) weight of `type` with `rows` activations; `gflops` is the best of `repeats`.
Status MeasureMatMul(Device* device, const std::string& type, int64_t in, int64_t out, int64_t rows, int repeats,
                     double* gflops);

// The type that ggml calls `name`; GGML_TYPE_COUNT: none.
ggml_type TypeNamed(const std::string& name);

}  // namespace onpolicy::training
