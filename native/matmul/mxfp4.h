// MXFP4: blocks of an exponent and 32 values of four bits, which stand for 16 numbers -> panels: two steps a vector, and exponents.
#pragma once
#include "matmul/scaled-blocks.h"

namespace onpolicy::matmul {

// Halves of bytes as in Q4_0. The numbers, of which ggml has the doubles and half the scale: 0, 0.5, 1, 1.5, 2, 3, 4, 6, and negative.
struct MXFP4 : ScaledBlocks<kSteps / 2, 0, 1> {
  static constexpr int32_t kOffset = 12, kLargest = 31;  // of numbers up to 24, in five bits
  static constexpr uint8_t kNumbers[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};  // plus kOffset
};

}  // namespace onpolicy::matmul
