#include "attention/seen-cells.h"

#include <algorithm>

namespace onpolicy::attention {
namespace {

constexpr size_t kMostMasks = 8;

}  // namespace

const SeenCells* GraphMasks::Of(const Attention& attention, const Kernels& kernels) {
  if (is_ended_) {
    is_ended_ = false;
    ++graph_;
    if (entries_.size() > kMostMasks) entries_.clear();
  }
  Entry& entry = entries_[attention.mask];
  SeenCells& seen = entry.cells;
  if (entry.graph == graph_) return &seen;
  entry.graph = graph_;
  const int64_t words = attention.cells / kBlockCells, streams = attention.mask_stream == 0 ? 1 : attention.streams;
  seen.bits.resize(static_cast<size_t>(streams * attention.tokens * words));
  seen.first_word = words;
  seen.end_word = 0;
  uint64_t* bits = seen.bits.data();
  for (int64_t stream = 0; stream < streams; ++stream)
    for (int64_t token = 0; token < attention.tokens; ++token, bits += words) {
      const auto* mask = reinterpret_cast<const uint16_t*>(attention.mask + static_cast<size_t>(stream) * attention.mask_stream +
                                                           static_cast<size_t>(token) * attention.mask_token);
      for (int64_t word = 0; word < words; ++word) {
        bits[word] = kernels.visible(mask + word * kBlockCells);
        if (!bits[word]) continue;
        seen.first_word = std::min(seen.first_word, word);
        seen.end_word = std::max(seen.end_word, word + 1);
      }
    }
  return &seen;
}

}  // namespace onpolicy::attention
