// Q4_0: blocks of a 16-bit scale and 32 values of four bits, plus 8 -> panels: two steps a vector, and scales of each block.
#pragma once
#include "products/format.h"

namespace onpolicy::products {

struct Q4_0 {
  static constexpr Terms kTerms = Terms::kOffset;
  static constexpr int64_t kGroup = kBlock, kGroupBytes = 2 + kBlock / 2;
  static constexpr int32_t kOffset = 8, kLargest = 15;
  static constexpr int64_t kPackedBytes = kBlockBytes / 2;  // of a block: step v in the low, v + 4 in the high halves of bytes

  static constexpr int64_t kStride = kPackedBytes + kHalfBytes;  // of a block of a panel: values, then scales

  static size_t PanelBytes(int64_t width) { return RoundedToVectors(static_cast<size_t>(width / kBlock * kStride)); }

  // The file has the same halves of bytes.
  static void Pack(const uint8_t* rows, int64_t width, int64_t count, uint8_t* panel) {
    Exchange(width, count, [&](int64_t block, int64_t scale, int64_t values) {
      std::memcpy(panel + scale, rows + block, 2);
      for (int64_t v = 0; v < kSteps / 2; ++v) StoreFour(LoadFour(rows + block + 2 + 4 * v), panel + values + v * kStepBytes);
    });
  }

  static void Unpack(const uint8_t* panel, int64_t width, int64_t count, uint8_t* rows) {
    Exchange(width, count, [&](int64_t block, int64_t scale, int64_t values) {
      std::memcpy(rows + block, panel + scale, 2);
      for (int64_t v = 0; v < kSteps / 2; ++v) StoreFour(LoadFour(panel + values + v * kStepBytes), rows + block + 2 + 4 * v);
    });
  }

 private:
  // Where a block stands in the file, and its scale and values in the panel, in bytes.
  template <typename Copy>
  static void Exchange(int64_t width, int64_t count, const Copy& copy) {
    const int64_t blocks = width / kBlock;
    for (int64_t b = 0; b < blocks; ++b)
      for (int64_t row = 0; row < count; ++row)
        copy((row * blocks + b) * kGroupBytes, b * kStride + kPackedBytes + row * 2, b * kStride + row * 4);
  }
};

}  // namespace onpolicy::products
