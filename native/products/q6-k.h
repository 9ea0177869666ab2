// Q6_K: 256 values of six bits, with 8-bit scales of each 16 -> panels: low halves, high pairs of bits, then all scales.
#pragma once
#include <cstring>

#include "products/format.h"

namespace onpolicy::products {

struct Q6_K {
  static constexpr Terms kTerms = Terms::kHalves;
  static constexpr int64_t kGroup = 256, kGroupBytes = 210;
  static constexpr int32_t kOffset = 32;
  static constexpr int64_t kGroupBlocks = kGroup / kBlock;
  // Of a block: four vectors with step v in the low, v + 4 in the high halves of bytes; two with the upper bits of steps v, v + 2,
  // v + 4, v + 6.
  static constexpr int64_t kLowBytes = 4 * kStepBytes, kPackedBytes = 6 * kStepBytes;

  // In a panel: (blocks, 2, kPanel) signed scales, then (groups, kPanel) 16-bit scales of scales.
  static int64_t ScalesAt(int64_t width) { return width / kBlock * kPackedBytes; }
  static int64_t FactorsAt(int64_t width) { return ScalesAt(width) + width / kBlock * 2 * kPanel; }
  static size_t PanelBytes(int64_t width) {
    return RoundedToVectors(static_cast<size_t>(FactorsAt(width) + width / kGroup * kPanel * 2));
  }

  static void Pack(const uint8_t* rows, int64_t width, int64_t count, uint8_t* panel) {
    std::memset(panel, 0, PanelBytes(width));
    ForEachGroup(width, count, [&](int64_t g, int64_t row) {
      const uint8_t* group = rows + (row * (width / kGroup) + g) * kGroupBytes;
      for (int64_t i = 0; i < kGroup; ++i) {
        const Place place(i);
        const int low = group[place.low] >> place.low_shift & 15, high = group[place.high] >> place.high_shift & 3;
        uint8_t* block = panel + (g * kGroupBlocks + i / kBlock) * kPackedBytes;
        const int64_t step = i % kBlock / 4, at = row * 4 + i % 4;
        block[step % 4 * kStepBytes + at] |= static_cast<uint8_t>(low << step / 4 * 4);
        block[kLowBytes + step % 2 * kStepBytes + at] |= static_cast<uint8_t>(high << step / 2 * 2);
      }
      for (int64_t s = 0; s < 16; ++s)
        panel[ScalesAt(width) + (g * 16 + s) * kPanel + row] = group[192 + s];
      std::memcpy(panel + FactorsAt(width) + (g * kPanel + row) * 2, group + 208, 2);
    });
  }

  static void Unpack(const uint8_t* panel, int64_t width, int64_t count, uint8_t* rows) {
    ForEachGroup(width, count, [&](int64_t g, int64_t row) {
      uint8_t* group = rows + (row * (width / kGroup) + g) * kGroupBytes;
      std::memset(group, 0, kGroupBytes);
      for (int64_t i = 0; i < kGroup; ++i) {
        const Place place(i);
        const uint8_t* block = panel + (g * kGroupBlocks + i / kBlock) * kPackedBytes;
        const int64_t step = i % kBlock / 4, at = row * 4 + i % 4;
        const int low = block[step % 4 * kStepBytes + at] >> step / 4 * 4 & 15;
        const int high = block[kLowBytes + step % 2 * kStepBytes + at] >> step / 2 * 2 & 3;
        group[place.low] |= static_cast<uint8_t>(low << place.low_shift);
        group[place.high] |= static_cast<uint8_t>(high << place.high_shift);
      }
      for (int64_t s = 0; s < 16; ++s)
        group[192 + s] = panel[ScalesAt(width) + (g * 16 + s) * kPanel + row];
      std::memcpy(group + 208, panel + FactorsAt(width) + (g * kPanel + row) * 2, 2);
    });
  }

 private:
  // Where ggml has the bits of a value: bytes of the group, and the bit in them.
  struct Place {
    int64_t low, high;
    int low_shift, high_shift;
    explicit Place(int64_t i) {
      const int64_t half = i / 128, part = i % 128 / 32, l = i % 32;
      low = half * 64 + l + (part % 2) * 32;
      low_shift = part < 2 ? 0 : 4;
      high = 128 + half * 32 + l;
      high_shift = static_cast<int>(part) * 2;
    }
  };

  template <typename Work>
  static void ForEachGroup(int64_t width, int64_t count, const Work& work) {
    for (int64_t g = 0; g < width / kGroup; ++g)
      for (int64_t row = 0; row < count; ++row) work(g, row);
  }
};

}  // namespace onpolicy::products
