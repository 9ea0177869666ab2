#include "kernels/float-transpose.h"

#include <algorithm>
#include <bit>

#include "base/target.h"

namespace onpolicy::training {
namespace {

constexpr int64_t kTransposeTile = 32;  // both sides of a tile stay in the nearest cache

// Rounds to nearest, ties to even. NaN stays NaN.
inline uint16_t RoundToBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value != value) return static_cast<uint16_t>((bits >> 16) | 64);
  return static_cast<uint16_t>((bits + (0x7fff + ((bits >> 16) & 1))) >> 16);
}

inline void Store(float value, float* to) { *to = value; }
inline void Store(float value, uint16_t* to) { *to = RoundToBf16(value); }

template <typename Number>
inline void TransposeTiles(const float* __restrict from, int64_t in, int64_t columns, Number* __restrict to, int64_t first,
                      int64_t last) {
  for (int64_t c0 = 0; c0 < columns; c0 += kTransposeTile)
    for (int64_t i0 = first; i0 < last; i0 += kTransposeTile) {
      const int64_t c1 = std::min(columns, c0 + kTransposeTile), i1 = std::min(last, i0 + kTransposeTile);
      for (int64_t i = i0; i < i1; ++i)
        for (int64_t c = c0; c < c1; ++c) Store(from[c * in + i], to + i * columns + c);
    }
}

ONPOLICY_BEST_TARGET void TransposeToFloat32(const float* from, int64_t in, int64_t columns, float* to, int64_t first,
                                   int64_t last) {
  TransposeTiles(from, in, columns, to, first, last);
}

ONPOLICY_BEST_TARGET void TransposeToBf16(const float* from, int64_t in, int64_t columns, uint16_t* to, int64_t first,
                                     int64_t last) {
  TransposeTiles(from, in, columns, to, first, last);
}

}  // namespace

void TransposeFloats(const float* from, int64_t in, int64_t columns, bool is_narrow, void* to, int64_t first, int64_t last) {
  if (is_narrow)
    TransposeToBf16(from, in, columns, static_cast<uint16_t*>(to), first, last);
  else
    TransposeToFloat32(from, in, columns, static_cast<float*>(to), first, last);
}

}  // namespace onpolicy::training
