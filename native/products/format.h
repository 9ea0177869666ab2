// A quantized type of ggml -> its packed form: the same values, ordered for products of 16 rows at a time. README.md draws it.
#pragma once
#include <ggml.h>

#include <cstddef>
#include <cstdint>

namespace onpolicy::products {

constexpr int64_t kBlock = 32;                  // values of a row that are multiplied by one scale of the activations
constexpr int64_t kSteps = kBlock / 4;          // a step multiplies four values of each row
constexpr int64_t kPanel = 16;                  // rows that lie together
constexpr int64_t kStepBytes = 4 * kPanel;      // one vector
constexpr int64_t kBlockBytes = kSteps * kStepBytes;
constexpr int64_t kChunkBlocks = 16;            // blocks of a panel that are expanded at once: they stay in the first cache

// A block's part of a row's sum, with u the unsigned values of the weights and x the rounded activations:
enum class Terms {
  kOffset,   // scale * (u . x - offset * sum(x))
  kHalves,   // the same for each half of 16 values, with a scale of its own
  kMinimum,  // scale * (u . x) - minimum * sum(x)
};

constexpr int ScalesOf(Terms terms) { return terms == Terms::kOffset ? 1 : 2; }

// Some blocks of one panel as the kernels multiply them.
struct Expanded {
  const uint8_t* values;  // (blocks, kSteps, kPanel, 4)
  const float* scales;    // (blocks, ScalesOf, kPanel): scales; of kMinimum scales, then minima
  int64_t ahead;          // bytes from the values to those that are worth fetching meanwhile
};

// Where a panel is expanded to, if its values do not lie ready in the packed form.
struct Scratch {
  alignas(64) uint8_t values[kChunkBlocks * kBlockBytes];
  alignas(64) float scales[kChunkBlocks * 2 * kPanel];
};

struct Format {
  ggml_type type;
  int index;           // in kFormats
  int64_t group;       // values of a row that ggml encodes together
  int64_t group_bytes;
  Terms terms;
  int32_t offset;
  size_t (*panel_bytes)(int64_t width);  // a multiple of 64
  // Rows of the file -> a panel. Rows past `count` are zeros.
  void (*pack)(const uint8_t* rows, int64_t width, int64_t count, uint8_t* panel);
  // The reverse, bit for bit.
  void (*unpack)(const uint8_t* panel, int64_t width, int64_t count, uint8_t* rows);

  // Whether the kernels multiply a copy of the values, not the packed ones.
  bool is_expanded() const { return terms != Terms::kOffset; }
  int64_t row_bytes(int64_t width) const { return width / group * group_bytes; }
};

inline size_t RoundedToVectors(size_t bytes) { return (bytes + 63) / 64 * 64; }

// All formats, each a struct of this name. One that is added gets its own header, its line here, and its Expand in kernel-body.h.
#define ONPOLICY_PRODUCT_FORMATS(X) X(Q8_0) X(Q4_K) X(Q6_K)

enum FormatIndex {
#define ONPOLICY_INDEX(name) k##name,
  ONPOLICY_PRODUCT_FORMATS(ONPOLICY_INDEX)
#undef ONPOLICY_INDEX
      kFormatCount
};
extern const Format kFormats[kFormatCount];

// Null where products of this type are ggml's.
const Format* FormatOf(ggml_type type);

}  // namespace onpolicy::products
