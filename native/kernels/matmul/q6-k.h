// Q6_K: 256 values of six bits, with 8-bit scales of each 16 -> panels: blocks of high pairs of bits, low halves and scales.
#pragma once
#include "kernels/matmul/format.h"

namespace onpolicy::matmul {

struct Q6_K {
  static constexpr Terms kTerms = Terms::kHalves;
  static constexpr int64_t kGroup = 256, kGroupBytes = 210;
  static constexpr int32_t kOffset = 32, kLargest = 63;
  static constexpr int64_t kGroupBlocks = kGroup / kBlock;

  // A group of a panel has 16-bit scales of scales, then blocks. A block has two vectors with the upper bits of steps v, v + 2, v + 4, v + 6;
  // four with step v in the low, v + 4 in the high halves of bytes; then (2, kPanel) signed scales.
  static constexpr int64_t kFirstBlockAt = kHalfBytes;
  static constexpr int64_t kLowAt = 2 * kStepBytes, kScalesAt = 6 * kStepBytes, kBlockStride = kScalesAt + 2 * kPanel;
  static constexpr int64_t kStride = kFirstBlockAt + kGroupBlocks * kBlockStride;

  static size_t PanelBytes(int64_t width) { return RoundedToVectors(static_cast<size_t>(width / kGroup * kStride)); }

  static void Pack(const uint8_t* rows, int64_t width, int64_t count, uint8_t* panel) {
    if (count < kPanel) std::memset(panel, 0, PanelBytes(width));
    for (int64_t g = 0; g < width / kGroup; ++g)
      for (int64_t row = 0; row < count; ++row) {
        const uint8_t* group = rows + (row * (width / kGroup) + g) * kGroupBytes;
        uint8_t* to = panel + g * kStride;
        for (int64_t b = 0; b < kGroupBlocks; ++b) {
          const Place place(b);
          uint32_t low[kSteps], high[kSteps];
          for (int64_t step = 0; step < kSteps; ++step) {
            low[step] = LoadFour(group + place.low + 4 * step) >> place.low_shift & kLowNibbles;
            high[step] = LoadFour(group + place.high + 4 * step) >> place.high_shift & kLowPairs;
          }
          uint8_t* block = to + kFirstBlockAt + b * kBlockStride;
          for (int64_t v = 0; v < 4; ++v) StoreFour(low[v] | low[v + 4] << 4, block + kLowAt + v * kStepBytes + row * 4);
          for (int64_t v = 0; v < 2; ++v)
            StoreFour(high[v] | high[v + 2] << 2 | high[v + 4] << 4 | high[v + 6] << 6, block + v * kStepBytes + row * 4);
          for (int64_t part = 0; part < 2; ++part) block[kScalesAt + part * kPanel + row] = group[192 + 2 * b + part];
        }
        std::memcpy(to + row * 2, group + 208, 2);
      }
  }

  static void Unpack(const uint8_t* panel, int64_t width, int64_t count, uint8_t* rows) {
    for (int64_t g = 0; g < width / kGroup; ++g)
      for (int64_t row = 0; row < count; ++row) {
        uint8_t* group = rows + (row * (width / kGroup) + g) * kGroupBytes;
        const uint8_t* from = panel + g * kStride;
        std::memset(group, 0, kGroupBytes);
        for (int64_t b = 0; b < kGroupBlocks; ++b) {
          const Place place(b);
          const uint8_t* block = from + kFirstBlockAt + b * kBlockStride;
          for (int64_t step = 0; step < kSteps; ++step) {
            const uint32_t low = LoadFour(block + kLowAt + step % 4 * kStepBytes + row * 4) >> step / 4 * 4 & kLowNibbles;
            const uint32_t high = LoadFour(block + step % 2 * kStepBytes + row * 4) >> step / 2 * 2 & kLowPairs;
            Add(low << place.low_shift, group + place.low + 4 * step);
            Add(high << place.high_shift, group + place.high + 4 * step);
          }
          for (int64_t part = 0; part < 2; ++part) group[192 + 2 * b + part] = block[kScalesAt + part * kPanel + row];
        }
        std::memcpy(group + 208, from + row * 2, 2);
      }
  }

 private:
  // Position of a block's bits in ggml's layout: the first byte within the group, and the bit in it.
  struct Place {
    int64_t low, high;
    int low_shift, high_shift;
    explicit Place(int64_t block) {
      const int64_t half = block / 4, part = block % 4;
      low = half * 64 + part % 2 * 32;
      low_shift = part < 2 ? 0 : 4;
      high = 128 + half * 32;
      high_shift = static_cast<int>(part) * 2;
    }
  };

  static void Add(uint32_t bits, uint8_t* to) { StoreFour(LoadFour(to) | bits, to); }
};

}  // namespace onpolicy::matmul
