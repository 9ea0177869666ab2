// A matrix of 32-bit floats, rows for columns, in 32-bit floats or BF16: as products over its other side read it.
#pragma once
#include <cstdint>

namespace onpolicy::training {

// from: (in, columns) as ggml counts -> to: (columns, in), of which rows [first, last) of `in` are written.
void Turn(const float* from, int64_t in, int64_t columns, bool is_narrow, void* to, int64_t first, int64_t last);

}  // namespace onpolicy::training
