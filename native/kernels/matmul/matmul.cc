#include "kernels/matmul/matmul.h"

#include <algorithm>
#include <cstring>

namespace onpolicy::matmul {
namespace {

constexpr int64_t kCachedBytes = 512 << 10;  // of rounded activations: half of a small second cache

// Returns the number of lines of the next panel to prefetch with each block, so that all groups together fetch the panel. 0 for one group,
// which is a single stream of memory that the processor prefetches better.
int64_t LinesAhead(int64_t panel_bytes, int64_t blocks, int64_t groups) {
  const int64_t share = blocks * groups * kLineBytes;
  return groups > 1 ? (panel_bytes + share - 1) / share : 0;
}

// Computes a tile in separate memory and copies it to `output`: for tokens whose columns have places, or for the last panel, whose rows past
// `rows` have no room in the columns.
void RunAside(RunTileFunction* run, TileInput input, const Output& output, int64_t token, int64_t count, int64_t row, int64_t rows) {
  constexpr int64_t kMostRows = 2 * kPanel;
  float sums[kMostTokens * kMostRows];
  input.y = sums;
  input.stride = kMostRows;
  run(input);
  for (int64_t t = 0; t < count; ++t) {
    const int64_t column = output.places ? output.places[token + t] : token + t;
    std::memcpy(output.y + column * output.stride + row, sums + t * kMostRows, static_cast<size_t>(rows) * sizeof(float));
  }
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
  const Groups groups(kernels, activations.tokens);
  for (int64_t i = 0; i < groups.count; ++i) {
    const int64_t token = groups.First(i), count = groups.First(i + 1) - token;
    const float* x[kMostTokens];
    for (int64_t t = 0; t < count; ++t)
      x[t] = reinterpret_cast<const float*>(static_cast<const char*>(activations.x) +
                                            static_cast<size_t>(token + t) * activations.stride);
    kernels.round(x, static_cast<int>(count), first, last, format, rounded + token * numbers);
  }
}

void MultiplyPanels(const Kernels& kernels, const PackedMatrix& matrix, const int32_t* rounded, int64_t tokens,
                    int64_t first, int64_t last, const Output& output) {
  const Format& format = *matrix.format;
  const size_t bytes = format.panel_bytes(matrix.width);
  const int64_t numbers = matrix.blocks() * RowsOf(format.terms);  // of a token
  const Groups groups(kernels, tokens);
  // Number of groups whose activations stay in the cache while all panels are read, each as one stream of memory.
  const int64_t group_bytes = numbers * kernels.most_tokens * static_cast<int64_t>(sizeof(int32_t));
  const int64_t cached = std::max<int64_t>(1, kCachedBytes / group_bytes);
  TileInput input{};
  input.blocks = matrix.blocks();
  input.stride = output.stride;
  input.panel_bytes = static_cast<int64_t>(bytes);
  const auto index = static_cast<size_t>(format.index);
  const bool is_wide = groups.count > 1 && kernels.wide_tiles[index][0];  // a single group reads weights as a single stream of memory
  for (int64_t from = 0; from < groups.count; from += cached) {
    const int64_t end = std::min(groups.count, from + cached);
    for (int64_t panel = first, panels; panel < last; panel += panels) {
      panels = is_wide && last - panel > 1 ? 2 : 1;
      const auto& tiles = (panels > 1 ? kernels.wide_tiles : kernels.tiles)[index];
      const int64_t tile_bytes = panels * input.panel_bytes, lines = LinesAhead(tile_bytes, matrix.blocks(), end - from);
      input.panel = matrix.panels + static_cast<size_t>(panel) * bytes;
      const uint8_t* const next = input.panel + tile_bytes;
      input.ahead = next;
      const int64_t row = panel * kPanel, rows = std::min(panels * kPanel, matrix.rows - row);
      for (int64_t i = from; i < end; ++i) {
        const int64_t token = groups.First(i), count = groups.First(i + 1) - token;
        input.group = rounded + token * numbers;
        input.y = output.y + token * output.stride + row;
        input.ahead_lines = input.ahead < next + tile_bytes ? lines : 0;
        RunTileFunction* run = tiles[static_cast<size_t>(count - 1)];
        if (rows == panels * kPanel && !output.places) run(input);
        else RunAside(run, input, output, token, count, row, rows);
        input.ahead += matrix.blocks() * lines * kLineBytes;
      }
    }
  }
}

}  // namespace onpolicy::matmul
