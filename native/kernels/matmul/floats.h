// F16, BF16 and F32: rows of numbers -> panels, 16 rows of the first column, of the second ... They are multiplied unchanged
// by activations rounded to the same type.
#pragma once
#include "kernels/matmul/format.h"

namespace onpolicy::matmul {

// Numbers of `kBytes` bytes each.
template <int64_t kBytes>
struct FloatRows {
  static constexpr Terms kTerms = Terms::kFloats;
  static constexpr int64_t kGroup = kBlock, kGroupBytes = kBytes * kBlock;
  static constexpr int32_t kOffset = 0;
  static constexpr int64_t kNumberBytes = kBytes;

  static size_t PanelBytes(int64_t width) { return RoundedToVectors(static_cast<size_t>(width * kPanel * kBytes)); }

  static void Pack(const uint8_t* rows, int64_t width, int64_t count, uint8_t* panel) {
    if (count < kPanel) std::memset(panel, 0, PanelBytes(width));
    for (int64_t column = 0; column < width; ++column)
      for (int64_t row = 0; row < count; ++row)
        std::memcpy(panel + (column * kPanel + row) * kBytes, rows + (row * width + column) * kBytes, kBytes);
  }

  static void Unpack(const uint8_t* panel, int64_t width, int64_t count, uint8_t* rows) {
    for (int64_t row = 0; row < count; ++row)
      for (int64_t column = 0; column < width; ++column)
        std::memcpy(rows + (row * width + column) * kBytes, panel + (column * kPanel + row) * kBytes, kBytes);
  }
};

struct F16 : FloatRows<2> {};
struct BF16 : FloatRows<2> {};
struct F32 : FloatRows<4> {};

}  // namespace onpolicy::matmul
