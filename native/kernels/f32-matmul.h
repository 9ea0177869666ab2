// Matmuls of 32-bit matrices with any memory layout, by AVX-512.
#pragma once
#include <cstdint>

namespace onpolicy::training {

// Returns true if this processor has AVX-512 with 8-bit dot products, and the compiler can build functions for it beside others.
bool HasAvx512();

// A matrix in memory: value (i, j) is at data[i * inner + j * outer].
struct StridedMatrix {
  const float* data;
  int64_t inner, outer;
};

// Requires HasAvx512(). y = a^T b for columns [first, last) of b. a: (size, outputs); b: (size, columns); y: (outputs, columns) columns of `outputs`.
void F32Matmul(float* y, StridedMatrix a, StridedMatrix b, int64_t size, int64_t outputs, int64_t first, int64_t last);

}  // namespace onpolicy::training
