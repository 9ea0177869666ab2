// Blocks of a scale and words of four bytes of values, as files have them -> panels: the words of all rows, then their scales.
#pragma once
#include "matmul/format.h"

namespace onpolicy::matmul {

// `kWords` of a block, each with the bits of `kFlipped` inverted in the panel.
template <int64_t kWords, uint32_t kFlipped, int64_t kScaleBytes = 2>
struct ScaledBlocks {
  static constexpr Terms kTerms = Terms::kOffset;
  static constexpr int64_t kGroup = kBlock, kGroupBytes = kScaleBytes + 4 * kWords;
  static constexpr int64_t kScalesAt = kWords * kStepBytes, kStride = kScalesAt + kScaleBytes * kPanel;  // of a block of a panel

  static size_t PanelBytes(int64_t width) { return RoundedToVectors(static_cast<size_t>(width / kBlock * kStride)); }

  static void Pack(const uint8_t* rows, int64_t width, int64_t count, uint8_t* panel) {
    Exchange(width, count, [&](int64_t block, int64_t scale, int64_t values) {
      std::memcpy(panel + scale, rows + block, kScaleBytes);
      for (int64_t word = 0; word < kWords; ++word)
        StoreFour(LoadFour(rows + block + kScaleBytes + 4 * word) ^ kFlipped, panel + values + word * kStepBytes);
    });
  }

  static void Unpack(const uint8_t* panel, int64_t width, int64_t count, uint8_t* rows) {
    Exchange(width, count, [&](int64_t block, int64_t scale, int64_t values) {
      std::memcpy(rows + block, panel + scale, kScaleBytes);
      for (int64_t word = 0; word < kWords; ++word)
        StoreFour(LoadFour(panel + values + word * kStepBytes) ^ kFlipped, rows + block + kScaleBytes + 4 * word);
    });
  }

 private:
  // Where a block stands in the file, and its scale and values in the panel, in bytes.
  template <typename Copy>
  static void Exchange(int64_t width, int64_t count, const Copy& copy) {
    const int64_t blocks = width / kBlock;
    for (int64_t b = 0; b < blocks; ++b)
      for (int64_t row = 0; row < count; ++row)
        copy((row * blocks + b) * kGroupBytes, b * kStride + kScalesAt + row * kScaleBytes, b * kStride + row * 4);
  }
};

}  // namespace onpolicy::matmul
