// Blocks of a scale and words of four bytes of values, as files have them -> panels: the words of all rows, then their scales.
#pragma once
#include "kernels/matmul/format.h"

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
  // Calls `copy` for each block with its offset in the file and the offsets of its scale and values in the panel, in bytes.
  template <typename Copy>
  static void Exchange(int64_t width, int64_t count, const Copy& copy) {
    const int64_t blocks = width / kBlock;
    for (int64_t b = 0; b < blocks; ++b)
      for (int64_t row = 0; row < count; ++row)
        copy((row * blocks + b) * kGroupBytes, b * kStride + kScalesAt + row * kScaleBytes, b * kStride + row * 4);
  }
};

// A 16-bit scale and 32 signed bytes; on x64 plus 128.
struct Q8_0 : ScaledBlocks<kSteps, kHasSignedWeights ? 0 : 0x80808080u> {
  static constexpr int32_t kOffset = 128, kLargest = 255;
};

// A 16-bit scale and 32 values of four bits, plus 8. As in the file, step v is in the low halves of bytes and v + 4 in the high halves.
struct Q4_0 : ScaledBlocks<kSteps / 2, 0> {
  static constexpr int32_t kOffset = 8, kLargest = 15;
};

// An exponent and 32 values of four bits, in halves of bytes as in Q4_0. They encode 16 numbers, which ggml doubles, with half the
// scale: 0, 0.5, 1, 1.5, 2, 3, 4, 6, and negative.
struct MXFP4 : ScaledBlocks<kSteps / 2, 0, 1> {
  static constexpr int32_t kOffset = 12, kLargest = 31;  // of numbers up to 24, in five bits
  static constexpr uint8_t kNumbers[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};  // plus kOffset
};

}  // namespace onpolicy::matmul
