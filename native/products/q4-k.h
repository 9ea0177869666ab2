// Q4_K: 256 values of four bits, with 6-bit scales and minima of each 32 -> panels: two steps a vector, then all scales.
#pragma once
#include <cstring>

#include "products/format.h"

namespace onpolicy::products {

struct Q4_K {
  static constexpr Terms kTerms = Terms::kMinimum;
  static constexpr int64_t kGroup = 256, kGroupBytes = 144;
  static constexpr int32_t kOffset = 0;
  static constexpr int64_t kGroupBlocks = kGroup / kBlock;
  static constexpr int64_t kPackedBytes = kBlockBytes / 2;  // of a block: step v in the low, v + 4 in the high halves

  // In a panel: (blocks, kPanel) scales, as many minima, then (groups, kPanel) 16-bit scales of scales, and of minima.
  static int64_t ScalesAt(int64_t width) { return width / kBlock * kPackedBytes; }
  static int64_t MinimaAt(int64_t width) { return ScalesAt(width) + width / kBlock * kPanel; }
  static int64_t FactorsAt(int64_t width) { return MinimaAt(width) + width / kBlock * kPanel; }
  static size_t PanelBytes(int64_t width) {
    return RoundedToVectors(static_cast<size_t>(FactorsAt(width) + width / kGroup * kPanel * 4));
  }

  static void Pack(const uint8_t* rows, int64_t width, int64_t count, uint8_t* panel) {
    if (count < kPanel) std::memset(panel, 0, PanelBytes(width));
    for (int64_t g = 0; g < width / kGroup; ++g)
      for (int64_t row = 0; row < count; ++row) {
        const uint8_t* group = rows + (row * (width / kGroup) + g) * kGroupBytes;
        for (int64_t part = 0; part < 2; ++part) std::memcpy(Factor(panel, width, g, row, part), group + 2 * part, 2);
        const uint8_t* q = group + 4;
        for (int64_t b = 0; b < kGroupBlocks; ++b) {
          const int64_t at = (g * kGroupBlocks + b) * kPanel + row;
          const bool is_low = b < 4;
          panel[ScalesAt(width) + at] = static_cast<uint8_t>(is_low ? q[b] & 63 : (q[b + 4] & 15) | (q[b - 4] >> 6) << 4);
          panel[MinimaAt(width) + at] = static_cast<uint8_t>(is_low ? q[b + 4] & 63 : q[b + 4] >> 4 | (q[b] >> 6) << 4);
        }
        for (int64_t i = 0; i < kGroup; ++i) {
          const int value = group[16 + i / 64 * 32 + i % 32] >> (i % 64 < 32 ? 0 : 4) & 15;
          uint8_t* byte = Byte(panel, g, row, i);
          const bool is_high = i % kBlock >= kBlock / 2;
          *byte = static_cast<uint8_t>(is_high ? (*byte & 15) | value << 4 : value);
        }
      }
  }

  static void Unpack(const uint8_t* panel, int64_t width, int64_t count, uint8_t* rows) {
    for (int64_t g = 0; g < width / kGroup; ++g)
      for (int64_t row = 0; row < count; ++row) {
        uint8_t* group = rows + (row * (width / kGroup) + g) * kGroupBytes;
        std::memset(group, 0, kGroupBytes);
        for (int64_t part = 0; part < 2; ++part) std::memcpy(group + 2 * part, Factor(panel, width, g, row, part), 2);
        uint8_t* q = group + 4;
        for (int64_t b = 0; b < kGroupBlocks; ++b) {
          const int64_t at = (g * kGroupBlocks + b) * kPanel + row;
          const int scale = panel[ScalesAt(width) + at], minimum = panel[MinimaAt(width) + at];
          if (b < 4) {
            q[b] = static_cast<uint8_t>(scale);
            q[b + 4] = static_cast<uint8_t>(minimum);
          } else {
            q[b + 4] = static_cast<uint8_t>((scale & 15) | (minimum & 15) << 4);
            q[b - 4] = static_cast<uint8_t>(q[b - 4] | (scale >> 4) << 6);
            q[b] = static_cast<uint8_t>(q[b] | (minimum >> 4) << 6);
          }
        }
        for (int64_t i = 0; i < kGroup; ++i) {
          const int value = *Byte(panel, g, row, i) >> (i % kBlock < kBlock / 2 ? 0 : 4) & 15;
          group[16 + i / 64 * 32 + i % 32] |= static_cast<uint8_t>(value << (i % 64 < 32 ? 0 : 4));
        }
      }
  }

 private:
  template <typename Pointer>
  static Pointer Byte(Pointer panel, int64_t group, int64_t row, int64_t i) {
    const int64_t block = group * kGroupBlocks + i / kBlock, in_half = i % (kBlock / 2);
    return panel + block * kPackedBytes + in_half / 4 * kStepBytes + row * 4 + in_half % 4;
  }
  template <typename Pointer>
  static Pointer Factor(Pointer panel, int64_t width, int64_t group, int64_t row, int64_t part) {
    return panel + FactorsAt(width) + (part * (width / kGroup) + group) * kPanel * 2 + row * 2;
  }
};

}  // namespace onpolicy::products
