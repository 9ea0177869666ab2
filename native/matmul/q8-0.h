// Q8_0: blocks of a 16-bit scale and 32 signed bytes -> panels: values, on x64 plus 128, and scales of each block.
#pragma once
#include "matmul/scaled-blocks.h"

namespace onpolicy::matmul {

struct Q8_0 : ScaledBlocks<kSteps, kHasSignedWeights ? 0 : 0x80808080u> {
  static constexpr int32_t kOffset = 128, kLargest = 255;
};

}  // namespace onpolicy::matmul
