#include "kernels/low-rank.h"

#include <algorithm>

#include "base/target.h"

namespace onpolicy::training {
namespace {

constexpr int64_t kRanks = 4;    // factors that one pass over the data computes
constexpr int64_t kRowsAtOnce = 1024;  // rows whose factors stay in the nearest cache
constexpr int64_t kStrip = 64;   // rows whose sums stay in it

}  // namespace

ONPOLICY_BEST_TARGET void AddLowRank(float* __restrict y, const float* __restrict b, const float* __restrict h,
                                     int64_t size, int64_t rank, int64_t first_token, int64_t last_token) {
  for (int64_t start = 0; start < size; start += kRowsAtOnce) {
    const int64_t end = std::min(size, start + kRowsAtOnce);
    for (int64_t token = first_token; token < last_token; ++token) {
      float* target = y + token * size;
      const float* factors = h + token * rank;
      int64_t r = 0;
      for (; r + kRanks <= rank; r += kRanks) {
        const float f0 = factors[r], f1 = factors[r + 1], f2 = factors[r + 2], f3 = factors[r + 3];
        const float *b0 = b + r * size, *b1 = b0 + size, *b2 = b1 + size, *b3 = b2 + size;
        for (int64_t i = start; i < end; ++i) target[i] += f0 * b0[i] + f1 * b1[i] + (f2 * b2[i] + f3 * b3[i]);
      }
      for (; r < rank; ++r)
        for (int64_t i = start; i < end; ++i) target[i] += factors[r] * b[r * size + i];
    }
  }
}

ONPOLICY_BEST_TARGET void OuterLowRank(float* __restrict out, const float* __restrict x, const float* __restrict h,
                                       int64_t size, int64_t rank, int64_t tokens, int64_t first_row,
                                       int64_t last_row) {
  float sums[kRanks][kStrip];
  for (int64_t start = first_row; start < last_row; start += kStrip) {
    const int64_t count = std::min(kStrip, last_row - start);
    for (int64_t r = 0; r < rank; r += kRanks) {
      const int64_t ranks = std::min(kRanks, rank - r);
      for (auto& line : sums) std::fill(line, line + kStrip, 0.0f);
      for (int64_t token = 0; token < tokens; ++token) {
        const float* values = x + token * size + start;
        float factors[kRanks] = {};
        for (int64_t k = 0; k < ranks; ++k) factors[k] = h[token * rank + r + k];
        if (count == kStrip)
          for (int64_t i = 0; i < kStrip; ++i)
            for (int64_t k = 0; k < kRanks; ++k) sums[k][i] += factors[k] * values[i];
        else
          for (int64_t i = 0; i < count; ++i)
            for (int64_t k = 0; k < kRanks; ++k) sums[k][i] += factors[k] * values[i];
      }
      for (int64_t k = 0; k < ranks; ++k)
        for (int64_t i = 0; i < count; ++i) out[(r + k) * size + start + i] = sums[k][i];
    }
  }
}

}  // namespace onpolicy::training
