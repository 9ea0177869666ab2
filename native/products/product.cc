#include "products/product.h"

#include <algorithm>
#include <cstring>

namespace onpolicy::products {
namespace {

// Calls `work(tile, first token)` for each group of tokens: as many as the widest tile that they fill.
template <typename Work>
void ForEachGroup(const Kernels& kernels, int64_t tokens, const Work& work) {
  const Tile* tile = kernels.tiles;
  for (int64_t token = 0; token < tokens; token += tile->tokens) {
    while (tile->tokens > tokens - token) ++tile;
    work(*tile, token);
  }
}

// Products of a set of panels with groups of tokens, over some blocks.
class PanelSet {
 public:
  PanelSet(const Kernels& kernels, const PackedMatrix& matrix, int64_t first, int64_t last)
      : kernels_(kernels), matrix_(matrix), first_(first), count_(std::min<int64_t>(kSetPanels, last - first)) {}

  void Expand(int64_t first_block, int64_t blocks, Scratch* scratch) {
    const size_t bytes = matrix_.format->panel_bytes(matrix_.width);
    for (int64_t i = 0; i < count_; ++i)
      panels_[i] = kernels_.expand[matrix_.format->index](matrix_.panels + static_cast<size_t>(first_ + i) * bytes,
                                                         matrix_.width, first_block, blocks, scratch + i);
    first_block_ = first_block;
    blocks_ = blocks;
  }

  void Multiply(const Tile& tile, const int32_t* group, float* y, int64_t stride) {
    const Terms terms = matrix_.format->terms;
    TileInput input;
    input.group = group + first_block_ * RowsOf(terms) * tile.tokens;
    input.blocks = blocks_;
    input.adds = first_block_ > 0;
    for (int64_t start = 0; start < count_; start += tile.panels) {
      float spare[kSetPanels][kMostTokens * kPanel];
      for (int64_t i = 0; i < tile.panels; ++i) {
        const int64_t panel = std::min(start + i, count_ - 1);  // past the last one it is computed again, for nothing
        input.panels[i] = panels_[panel];
        const bool is_direct = start + i < count_ && RowsAt(panel) == kPanel;
        input.outputs[i] = is_direct ? y + (first_ + panel) * kPanel : spare[i];
        input.strides[i] = is_direct ? stride : kPanel;
        if (!is_direct && input.adds) CopyRows(y + (first_ + panel) * kPanel, stride, RowsAt(panel), tile.tokens, spare[i], kPanel);
      }
      tile.run[static_cast<int>(terms)](input);
      for (int64_t i = 0; i < tile.panels && start + i < count_; ++i)
        if (input.outputs[i] == spare[i])
          CopyRows(spare[i], kPanel, RowsAt(start + i), tile.tokens, y + (first_ + start + i) * kPanel, stride);
    }
  }

 private:
  int64_t RowsAt(int64_t panel) const { return std::min(kPanel, matrix_.rows - (first_ + panel) * kPanel); }

  static void CopyRows(const float* from, int64_t from_stride, int64_t rows, int tokens, float* to, int64_t to_stride) {
    for (int64_t token = 0; token < tokens; ++token)
      std::memcpy(to + token * to_stride, from + token * from_stride, static_cast<size_t>(rows) * sizeof(float));
  }

  const Kernels& kernels_;
  const PackedMatrix& matrix_;
  const int64_t first_, count_;
  int64_t first_block_ = 0, blocks_ = 0;
  Expanded panels_[kSetPanels];
};

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
  ForEachGroup(kernels, activations.tokens, [&](const Tile& tile, int64_t token) {
    kernels.round(static_cast<const char*>(activations.x) + static_cast<size_t>(token) * activations.stride,
                  activations.stride, tile.tokens, first, last, format, rounded + token * numbers);
  });
}

void MultiplyPanels(const Kernels& kernels, const PackedMatrix& matrix, const int32_t* rounded, int64_t tokens,
                    int64_t first, int64_t last, float* y, int64_t stride) {
  Scratch scratch[kSetPanels];
  const int64_t numbers = matrix.blocks() * RowsOf(matrix.format->terms);
  // One group of tokens reads each panel from its beginning to its end. Several groups share a chunk of the rounded activations
  // between all panels, while it is in the cache.
  const int64_t span = tokens <= kernels.tiles[0].tokens ? kSetPanels : last - first;
  for (int64_t from = first; from < last; from += span) {
    const int64_t to = std::min(last, from + span);
    for (int64_t block = 0; block < matrix.blocks(); block += kChunkBlocks)
      for (int64_t panel = from; panel < to; panel += kSetPanels) {
        PanelSet set(kernels, matrix, panel, to);
        set.Expand(block, std::min(kChunkBlocks, matrix.blocks() - block), scratch);
        ForEachGroup(kernels, tokens, [&](const Tile& tile, int64_t token) {
          set.Multiply(tile, rounded + token * numbers, y + token * stride, stride);
        });
      }
  }
}

}  // namespace onpolicy::products
