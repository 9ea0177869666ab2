// Q4_K: 256 values of four bits, with 6-bit scales and minima of each 32 -> panels: blocks of two steps a vector and their scales.
#pragma once
#include "kernels/matmul/format.h"

namespace onpolicy::matmul {

struct Q4_K {
  static constexpr Terms kTerms = Terms::kMinimum;
  static constexpr int64_t kGroup = 256, kGroupBytes = 144;
  static constexpr int32_t kOffset = 0, kLargest = 15;
  static constexpr int64_t kGroupBlocks = kGroup / kBlock;

  // A group of a panel has 16-bit scales of scales and of minima, then blocks. A block has values, with step v in the low and v + 4 in the
  // high halves of bytes, then scales and minima of each row.
  static constexpr int64_t kFirstBlockAt = 2 * kHalfBytes;
  static constexpr int64_t kScalesAt = kBlockBytes / 2, kMinimaAt = kScalesAt + kPanel, kBlockStride = kMinimaAt + kPanel;
  static constexpr int64_t kStride = kFirstBlockAt + kGroupBlocks * kBlockStride;

  static size_t PanelBytes(int64_t width) { return RoundedToVectors(static_cast<size_t>(width / kGroup * kStride)); }

  static void Pack(const uint8_t* rows, int64_t width, int64_t count, uint8_t* panel) {
    if (count < kPanel) std::memset(panel, 0, PanelBytes(width));
    for (int64_t g = 0; g < width / kGroup; ++g)
      for (int64_t row = 0; row < count; ++row) {
        const uint8_t* group = rows + (row * (width / kGroup) + g) * kGroupBytes;
        uint8_t* to = panel + g * kStride;
        std::memcpy(to + row * 2, group, 2);
        std::memcpy(to + kHalfBytes + row * 2, group + 2, 2);
        const uint8_t* q = group + 4;
        for (int64_t b = 0; b < kGroupBlocks; ++b) {
          const bool is_low = b < 4;
          uint8_t* block = to + kFirstBlockAt + b * kBlockStride + row;
          block[kScalesAt] = static_cast<uint8_t>(is_low ? q[b] & 63 : (q[b + 4] & 15) | (q[b - 4] >> 6) << 4);
          block[kMinimaAt] = static_cast<uint8_t>(is_low ? q[b + 4] & 63 : q[b + 4] >> 4 | (q[b] >> 6) << 4);
        }
        // Two blocks of the file share bytes: one has the low halves, the other the high halves.
        for (int64_t b = 0; b < kGroupBlocks; b += 2)
          for (int64_t v = 0; v < kSteps / 2; ++v) {
            const uint32_t first = LoadFour(group + 16 + b * 16 + 4 * v), second = LoadFour(group + 32 + b * 16 + 4 * v);
            uint8_t* vector = to + kFirstBlockAt + b * kBlockStride + v * kStepBytes + row * 4;
            StoreFour((first & kLowNibbles) | (second & kLowNibbles) << 4, vector);
            StoreFour((first >> 4 & kLowNibbles) | (second & ~kLowNibbles), vector + kBlockStride);
          }
      }
  }

  static void Unpack(const uint8_t* panel, int64_t width, int64_t count, uint8_t* rows) {
    for (int64_t g = 0; g < width / kGroup; ++g)
      for (int64_t row = 0; row < count; ++row) {
        uint8_t* group = rows + (row * (width / kGroup) + g) * kGroupBytes;
        const uint8_t* from = panel + g * kStride;
        std::memcpy(group, from + row * 2, 2);
        std::memcpy(group + 2, from + kHalfBytes + row * 2, 2);
        uint8_t* q = group + 4;
        for (int64_t b = 0; b < 4; ++b) {
          const auto at = [&](int64_t part, int64_t block) { return from[kFirstBlockAt + block * kBlockStride + part + row]; };
          const int scale = at(kScalesAt, b + 4), minimum = at(kMinimaAt, b + 4);
          q[b] = static_cast<uint8_t>(at(kScalesAt, b) | (scale >> 4) << 6);
          q[b + 4] = static_cast<uint8_t>(at(kMinimaAt, b) | (minimum >> 4) << 6);
          q[b + 8] = static_cast<uint8_t>((scale & 15) | (minimum & 15) << 4);
        }
        for (int64_t b = 0; b < kGroupBlocks; b += 2)
          for (int64_t v = 0; v < kSteps / 2; ++v) {
            const uint8_t* vector = from + kFirstBlockAt + b * kBlockStride + v * kStepBytes + row * 4;
            const uint32_t low = LoadFour(vector), high = LoadFour(vector + kBlockStride);
            StoreFour((low & kLowNibbles) | (high & kLowNibbles) << 4, group + 16 + b * 16 + 4 * v);
            StoreFour((low >> 4 & kLowNibbles) | (high & ~kLowNibbles), group + 32 + b * 16 + 4 * v);
          }
      }
  }
};

}  // namespace onpolicy::matmul
