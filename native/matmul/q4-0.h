// Q4_0: blocks of a 16-bit scale and 32 values of four bits, plus 8 -> panels: two steps a vector, and scales of each block.
#pragma once
#include "matmul/scaled-blocks.h"

namespace onpolicy::matmul {

// The file has the same halves of bytes: step v in the low, v + 4 in the high ones.
struct Q4_0 : ScaledBlocks<kSteps / 2, 0> {
  static constexpr int32_t kOffset = 8, kLargest = 15;
};

}  // namespace onpolicy::matmul
