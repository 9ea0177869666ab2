#include "attention/seen-cells.h"

#include <algorithm>

namespace onpolicy::attention {
namespace {

constexpr size_t kMostMasks = 8;

// Bit i: whether word * kBlockCells + i is below `end`.
uint64_t BitsBelow(int64_t end, int64_t word) {
  const int64_t count = std::clamp<int64_t>(end - word * kBlockCells, 0, kBlockCells);
  return count == kBlockCells ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

uint64_t InSight(const Sight& sight, int64_t token, int64_t word) {
  if (sight.first_token < 0) return ~uint64_t{0};
  const int64_t end = sight.first_token + token + 1;
  return BitsBelow(end, word) & ~(sight.window > 0 ? BitsBelow(end - sight.window, word) : 0);
}

}  // namespace

void ReadSeen(const Attention& attention, const Kernels& kernels, int64_t stream, int64_t first, int64_t count, uint64_t* bits) {
  const int64_t words = attention.cells / kBlockCells;
  for (int64_t token = first; token < first + count; ++token) {
    const auto* mask = reinterpret_cast<const uint16_t*>(attention.mask + static_cast<size_t>(stream) * attention.mask_stream +
                                                         static_cast<size_t>(token) * attention.mask_token);
    for (int64_t word = 0; word < words; ++word)
      *bits++ = attention.mask ? kernels.visible(mask + word * kBlockCells) : InSight(attention.sight, token, word);
  }
}

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
  for (int64_t stream = 0; stream < streams; ++stream)
    ReadSeen(attention, kernels, stream, 0, attention.tokens, seen.bits.data() + stream * attention.tokens * words);
  for (size_t i = 0; i < seen.bits.size(); ++i) {
    if (!seen.bits[i]) continue;
    const int64_t word = static_cast<int64_t>(i) % words;
    seen.first_word = std::min(seen.first_word, word);
    seen.end_word = std::max(seen.end_word, word + 1);
  }
  return &seen;
}

}  // namespace onpolicy::attention
