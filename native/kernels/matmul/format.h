// A quantized type of ggml -> its packed form: the same values, ordered for matmuls of 16 rows at a time. README.md has a drawing.
#pragma once
#include <ggml.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace onpolicy::matmul {

constexpr int64_t kBlock = 32;                  // values of a row that are multiplied by one scale of the activations
constexpr int64_t kSteps = kBlock / 4;          // a step multiplies four values of each row
constexpr int64_t kPanel = 16;                  // rows that are packed together
constexpr int64_t kStepBytes = 4 * kPanel;      // one vector
constexpr int64_t kBlockBytes = kSteps * kStepBytes;
constexpr int64_t kHalfBytes = 2 * kPanel;      // a 16-bit number of each row
#ifdef __aarch64__
constexpr bool kHasSignedWeights = true;        // there are dot products of signed bytes, so 8-bit weights are unchanged
#else
constexpr bool kHasSignedWeights = false;
#endif

// A block's part of a row's sum, with u the unsigned values of the weights and x the rounded activations:
enum class Terms {
  kOffset,   // scale * (u . x - offset * sum(x))
  kHalves,   // as kOffset, for each half of 16 values with its own scale
  kMinimum,  // scale * (u . x) - minimum * sum(x)
  kFloats,   // w . x, with activations rounded to the weights' type
};

struct Format {
  ggml_type type;
  int index;           // a FormatIndex, of types.h
  int64_t group;       // values of a row that ggml encodes together
  int64_t group_bytes;
  Terms terms;
  int32_t offset;
  size_t (*panel_bytes)(int64_t width);  // a multiple of 64
  // Rows of the file -> a panel. Rows past `count` are zeros.
  void (*pack)(const uint8_t* rows, int64_t width, int64_t count, uint8_t* panel);
  // The reverse, bit for bit.
  void (*unpack)(const uint8_t* panel, int64_t width, int64_t count, uint8_t* rows);

  int64_t row_bytes(int64_t width) const { return width / group * group_bytes; }
};

inline size_t RoundedToVectors(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Loads four bytes of a row: one step, or the bits of two or four steps.
inline uint32_t LoadFour(const uint8_t* from) {
  uint32_t four;
  std::memcpy(&four, from, 4);
  return four;
}
inline void StoreFour(uint32_t four, uint8_t* to) { std::memcpy(to, &four, 4); }
constexpr uint32_t kLowNibbles = 0x0F0F0F0F, kLowPairs = 0x03030303;

}  // namespace onpolicy::matmul
