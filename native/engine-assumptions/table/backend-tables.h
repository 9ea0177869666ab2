// The engine's tables of functions of devices, buffers and backends, whose layout only its own headers promise.
#pragma once
#include <ggml-backend-impl.h>

#include <cstddef>

namespace onpolicy {

// Returns true if this process can write the bytes. Always true where that cannot be found out.
bool IsWritable(const void* place, size_t bytes);

}  // namespace onpolicy
