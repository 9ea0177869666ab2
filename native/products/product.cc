#include "products/product.h"

#include <algorithm>
#include <cstring>

namespace onpolicy::products {
namespace {

constexpr int64_t kCachedBytes = 512 << 10;  // of rounded activations: half of a small second cache
constexpr int64_t kChunkBlocks = 8;          // a chunk is a multiple: a group of each type

// Calls `work(first token, tokens)` for each group of tokens: the fewest groups, about equal.
template <typename Work>
void ForEachGroup(const Kernels& kernels, int64_t tokens, const Work& work) {
  const int64_t groups = (tokens + kernels.most_tokens - 1) / kernels.most_tokens;
  for (int64_t i = 0; i < groups; ++i) work(tokens * i / groups, tokens * (i + 1) / groups - tokens * i / groups);
}

// Products of some blocks of one panel with a group of tokens. y: of the panel's first row.
void MultiplyPanel(RunTileFunction* run, TileInput input, int64_t tokens, int64_t rows, float* y, int64_t stride) {
  if (rows >= kPanel) {
    input.y = y;
    input.stride = stride;
    return run(input);
  }
  float spare[kMostTokens * kPanel];  // the last panel has rows of zeros
  const size_t bytes = static_cast<size_t>(rows) * sizeof(float);
  input.y = spare;
  input.stride = kPanel;
  for (int64_t t = 0; input.adds && t < tokens; ++t) std::memcpy(spare + t * kPanel, y + t * stride, bytes);
  run(input);
  for (int64_t t = 0; t < tokens; ++t) std::memcpy(y + t * stride, spare + t * kPanel, bytes);
}

}  // namespace

size_t RoundedBytes(const Format& format, int64_t width, int64_t tokens) {
  return static_cast<size_t>(width / kBlock * RowsOf(format.terms) * tokens) * sizeof(int32_t);
}

size_t PackedBytes(const Format& format, int64_t width, int64_t rows) {
  return static_cast<size_t>((rows + kPanel - 1) / kPanel) * format.panel_bytes(width);
}

void PackPanels(const PackedMatrix& matrix, const void* rows, int64_t first, int64_t last, uint8_t* packed) {
  const Format& format = *matrix.format;
  const size_t bytes = format.panel_bytes(matrix.width);
  for (int64_t panel = first; panel < last; ++panel)
    format.pack(static_cast<const uint8_t*>(rows) + panel * kPanel * format.row_bytes(matrix.width), matrix.width,
                std::min(kPanel, matrix.rows - panel * kPanel), packed + static_cast<size_t>(panel) * bytes);
}

void UnpackPanels(const PackedMatrix& matrix, int64_t first, int64_t last, void* rows) {
  const Format& format = *matrix.format;
  const size_t bytes = format.panel_bytes(matrix.width);
  for (int64_t panel = first; panel < last; ++panel)
    format.unpack(matrix.panels + static_cast<size_t>(panel) * bytes, matrix.width,
                  std::min(kPanel, matrix.rows - panel * kPanel),
                  static_cast<uint8_t*>(rows) + panel * kPanel * format.row_bytes(matrix.width));
}

void RoundBlocks(const Kernels& kernels, const Format& format, int64_t width, const Activations& activations, int64_t first,
                 int64_t last, int32_t* rounded) {
  const int64_t numbers = width / kBlock * RowsOf(format.terms);  // of a token
  ForEachGroup(kernels, activations.tokens, [&](int64_t token, int64_t count) {
    kernels.round(static_cast<const char*>(activations.x) + static_cast<size_t>(token) * activations.stride,
                  activations.stride, static_cast<int>(count), first, last, format, rounded + token * numbers);
  });
}

void MultiplyPanels(const Kernels& kernels, const PackedMatrix& matrix, const int32_t* rounded, int64_t tokens,
                    int64_t first, int64_t last, float* y, int64_t stride) {
  const Format& format = *matrix.format;
  const size_t bytes = format.panel_bytes(matrix.width);
  const int64_t numbers = RowsOf(format.terms);  // of a block of a token
  // A panel is read from its beginning to its end, a stream of memory, while the activations stay in the cache. Where they do not
  // fit, a chunk of theirs stays while all panels pass.
  const int64_t chunk_bytes = kChunkBlocks * numbers * tokens * static_cast<int64_t>(sizeof(int32_t));
  const int64_t chunk = std::max<int64_t>(1, kCachedBytes / chunk_bytes) * kChunkBlocks;
  for (int64_t block = 0; block < matrix.blocks(); block += chunk)
    for (int64_t panel = first; panel < last; ++panel)
      ForEachGroup(kernels, tokens, [&](int64_t token, int64_t count) {
        TileInput input{};
        input.panel = matrix.panels + static_cast<size_t>(panel) * bytes;
        input.first = block;
        input.count = std::min(chunk, matrix.blocks() - block);
        input.group = rounded + (token * matrix.blocks() + block * count) * numbers;
        input.adds = block > 0;
        MultiplyPanel(kernels.tiles[static_cast<size_t>(format.index)][static_cast<size_t>(count - 1)], input, count,
                      matrix.rows - panel * kPanel, y + token * stride + panel * kPanel, stride);
      });
}

}  // namespace onpolicy::products
