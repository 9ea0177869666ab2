// A float32 matrix -> its transpose in float32 or BF16.
#pragma once
#include <cstdint>

namespace onpolicy::training {

// from: (in, columns) as ggml counts -> to: (columns, in), of which rows [first, last) of `in` are written.
void TransposeFloats(const float* from, int64_t in, int64_t columns, bool is_narrow, void* to, int64_t first, int64_t last);

}  // namespace onpolicy::training
