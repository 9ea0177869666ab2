// Matmuls with the thin factors of an adapter, fused for the CPU, as kernels for large inner sizes are slow for them.
#pragma once
#include <cstdint>

namespace onpolicy::training {

// y += b h for a range of tokens. y: (size, tokens) columns; b: (size, rank) columns; h: (rank, tokens) columns.
void AddLowRank(float* y, const float* b, const float* h, int64_t size, int64_t rank, int64_t first_token,
                int64_t last_token);

// out = x h^T for a range of rows. x: (size, tokens) columns; h: (rank, tokens) columns; out: (size, rank) columns.
void OuterLowRank(float* out, const float* x, const float* h, int64_t size, int64_t rank, int64_t tokens,
                  int64_t first_row, int64_t last_row);

}  // namespace onpolicy::training
