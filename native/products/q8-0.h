// Q8_0: blocks of a 16-bit scale and 32 signed bytes -> panels: values, plus 128, and scales of each block.
#pragma once
#include "products/format.h"

namespace onpolicy::products {

struct Q8_0 {
  static constexpr Terms kTerms = Terms::kOffset;
  static constexpr int64_t kGroup = kBlock, kGroupBytes = 2 + kBlock;
  static constexpr int32_t kOffset = 128, kLargest = 255;

  static constexpr int64_t kStride = kBlockBytes + kHalfBytes;  // of a block of a panel: values, then scales

  static size_t PanelBytes(int64_t width) { return RoundedToVectors(static_cast<size_t>(width / kBlock * kStride)); }

  static void Pack(const uint8_t* rows, int64_t width, int64_t count, uint8_t* panel) {
    Exchange(width, count, [&](int64_t block, int64_t scale, int64_t values) {
      std::memcpy(panel + scale, rows + block, 2);
      for (int64_t step = 0; step < kSteps; ++step)
        CopyFlipped(rows + block + 2 + 4 * step, panel + values + step * kStepBytes);
    });
  }

  static void Unpack(const uint8_t* panel, int64_t width, int64_t count, uint8_t* rows) {
    Exchange(width, count, [&](int64_t block, int64_t scale, int64_t values) {
      std::memcpy(rows + block, panel + scale, 2);
      for (int64_t step = 0; step < kSteps; ++step)
        CopyFlipped(panel + values + step * kStepBytes, rows + block + 2 + 4 * step);
    });
  }

 private:
  // Where a block stands in the file, and its scale and values in the panel, in bytes.
  template <typename Copy>
  static void Exchange(int64_t width, int64_t count, const Copy& copy) {
    const int64_t blocks = width / kBlock;
    for (int64_t b = 0; b < blocks; ++b)
      for (int64_t row = 0; row < count; ++row)
        copy((row * blocks + b) * kGroupBytes, b * kStride + kBlockBytes + row * 2, b * kStride + row * 4);
  }

  // Signed <-> plus 128, four values.
  static void CopyFlipped(const uint8_t* from, uint8_t* to) { StoreFour(LoadFour(from) ^ 0x80808080u, to); }
};

}  // namespace onpolicy::products
