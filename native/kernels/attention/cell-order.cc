#include "kernels/attention/cell-order.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace onpolicy::attention {
namespace {

constexpr size_t kMostMasks = 8;
constexpr int kShortTokens = 16;  // of a sequence; shorter sequences are ordered together

// Returns bits: bit i is 1 if word * kBlockCells + i is below `end`.
uint64_t BitsBelow(int64_t end, int64_t word) {
  const int64_t count = std::clamp<int64_t>(end - word * kBlockCells, 0, kBlockCells);
  return count == kBlockCells ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

uint64_t InSight(const Sight& sight, int64_t token, int64_t word) {
  if (sight.first_token < 0) return ~uint64_t{0};
  const int64_t end = sight.first_token + token + 1;
  return BitsBelow(end, word) & ~(sight.window > 0 ? BitsBelow(end - sight.window, word) : 0);
}

// Cells in the order of positions. The position of cell i is `first` + i, or that of the cell if `first` is below 0.
struct Sorted {
  const int32_t* cells = nullptr;
  int64_t count = 0, first = 0;
  bool is_known = true;  // false: positions do not identify the cells
};

// Computes the order of some tokens, which are numbered from 0 here.
class Ordering {
 public:
  Ordering(const Attention& attention, const Kernels& kernels) : attention_(attention), kernels_(kernels), words_(attention.cells / kBlockCells) {}

  void Make(TokenGroup* group, CellOrder* order) {
    order_ = order;
    order->blocks.clear();
    order->cells.clear();
    order->seen.clear();
    order->cuts.clear();
    first_token_ = group->first_token;
    tokens_ = group->end_token - group->first_token;
    ReadBits(group->stream);
    for (int first = 0, end; first < tokens_; first = end) {
      end = EndOfShort(first);
      if (RunSequence(first, end)) Cut(end);
      else if (attention_.positions) RunShared(first, end);
      else RunLists(first, end);
    }
    group->order = order;
    group->first_block = 0;
    group->end_block = order->blocks.size();
  }

 private:
  void ReadBits(int64_t stream) {
    bits_.resize(static_cast<size_t>(tokens_ * words_));
    any_.resize(static_cast<size_t>(words_));
    all_.resize(static_cast<size_t>(words_));
    first_word_ = words_;
    end_word_ = 0;
    uint64_t* to = bits_.data();
    for (int64_t token = first_token_; token < first_token_ + tokens_; ++token) {
      const auto* mask = reinterpret_cast<const uint16_t*>(attention_.mask + static_cast<size_t>(stream) * attention_.mask_stream +
                                                           static_cast<size_t>(token) * attention_.mask_token);
      for (int64_t word = 0; word < words_; ++word) {
        *to = attention_.mask ? kernels_.visible(mask + word * kBlockCells) : InSight(attention_.sight, token, word);
        if (!*to++) continue;
        first_word_ = std::min(first_word_, word);
        end_word_ = std::max(end_word_, word + 1);
      }
    }
  }

  const uint64_t* CellsOf(int token) const { return bits_.data() + token * words_; }
  bool Sees(const uint64_t* cells, int32_t cell) const { return cells[cell / kBlockCells] >> (cell % kBlockCells) & 1; }
  int32_t LiesAt(int64_t cell) const { return attention_.places ? attention_.places[cell] : static_cast<int32_t>(cell); }
  int64_t PositionOf(int32_t cell) const { return attention_.positions[cell]; }

  // Adds the blocks of the tokens and returns true if they are of one sequence, whose cells are adjacent or have known positions.
  bool RunSequence(int first, int end) {
    if (EndOfSequence(first) < end) return false;
    int64_t first_word = end_word_, last = -1, count = 0;
    for (int64_t word = first_word_; word < end_word_; ++word) {
      uint64_t any = 0, all = ~uint64_t{0};
      for (int token = first; token < end; ++token) {
        any |= CellsOf(token)[word];
        all &= CellsOf(token)[word];
      }
      any_[static_cast<size_t>(word)] = any;
      all_[static_cast<size_t>(word)] = all;
      if (!any) continue;
      first_word = std::min(first_word, word);
      last = word;
      count += std::popcount(any);
    }
    if (attention_.positions) {
      const Sorted sorted = SortedOf(&list_, AddCells(any_.data(), nullptr, 0, &list_));
      if (sorted.is_known) RunSorted(sorted, first, end);
      return sorted.is_known;
    }
    if (last < 0) return true;
    const int64_t begin = first_word * kBlockCells + std::countr_zero(any_[static_cast<size_t>(first_word)]);
    if (count != (last + 1) * kBlockCells - std::countl_zero(any_[static_cast<size_t>(last)]) - begin) return false;
    RunRange(first, end);
    return true;
  }

  void Cut(int end) { order_->cuts.push_back({first_token_ + end, order_->blocks.size(), order_->cells.size()}); }

  // Returns the end of the tokens from `first` on that each see the cells of the previous one, except one new cell and one that left the
  // window. Two sequences with cells that similar may be computed as one.
  int EndOfSequence(int first) const {
    const auto is_second = [](uint64_t bits, bool* has_one) { return bits && ((bits & (bits - 1)) || std::exchange(*has_one, true)); };
    for (int token = first + 1; token < tokens_; ++token) {
      bool has_come = false, has_left = false;
      for (int64_t word = first_word_; word < end_word_; ++word) {
        const uint64_t before = CellsOf(token - 1)[word], now = CellsOf(token)[word];
        if (is_second(now & ~before, &has_come) || is_second(before & ~now, &has_left)) return token;
      }
    }
    return tokens_;
  }

  // Returns the end of the sequence from `first` on, or, if it is short, of all short sequences that follow.
  int EndOfShort(int first) const {
    int end = EndOfSequence(first);
    if (end - first >= kShortTokens) return end;
    for (int next; end < tokens_; end = next) {
      next = EndOfSequence(end);
      if (next - end >= kShortTokens) break;
    }
    return end;
  }

  // Adds a block and returns the memory of its cells.
  int32_t* AddBlock(int64_t block, int first_token, int end_token, int first, int end) {
    const size_t cells = order_->cells.size();
    order_->blocks.push_back({block / kSpanBlocks, first_token_ + first_token, first_token_ + end_token, first, end, cells, CellBlock::kAll});
    order_->cells.resize(cells + static_cast<size_t>(end));
    return order_->cells.data() + cells;
  }

  // Adds the bits of the cells that each token sees of the last block, given by `bits_of`.
  template <typename Bits>
  void AddSeen(int first, int end, const Bits& bits_of) {
    order_->blocks.back().seen = static_cast<int64_t>(order_->seen.size());
    for (int token = first; token < end; ++token) order_->seen.push_back(bits_of(token));
  }

  // Adds blocks of kBlockCells by their place in the cache. Cells that a row does not see have weight 0.
  void RunRange(int first, int end) {
    for (int64_t word = first_word_; word < end_word_; ++word) {
      const uint64_t any = any_[static_cast<size_t>(word)];
      if (!any) continue;
      const int count = kBlockCells - std::countl_zero(any);
      int32_t* cells = AddBlock(word, first, end, std::countr_zero(any), count);
      for (int i = 0; i < count; ++i) cells[i] = LiesAt(word * kBlockCells + i);
      if (any != all_[static_cast<size_t>(word)]) AddSeen(first, end, [&](int token) { return CellsOf(token)[word]; });
    }
  }

  // For a cache that sequences share, where cells of different sequences are interleaved. Cells that several tokens see, such as a common
  // prompt, are read for all of them at once, then the cells that each of them sees alone.
  void RunLists(int begin, int limit) {
    int64_t blocks = 0;
    for (int first = begin, end; first < limit; first = end) {
      end = EndOfSharers(first, limit);
      const uint64_t* all = end - first > 1 ? all_.data() : nullptr;
      if (all) RunList(all, nullptr, first, end, &blocks);
      for (int token = first; token < end; ++token) RunList(CellsOf(token), all, token, token + 1, &blocks);
      Cut(end);
    }
  }

  // Returns the end of the tokens from `first` on, up to `limit`, that see mostly the same cells. `all_` becomes the cells they share.
  int EndOfSharers(int first, int limit) {
    const auto common = [&](int token, const uint64_t* cells) {
      int64_t count = 0;
      for (int64_t word = first_word_; word < end_word_; ++word) count += std::popcount(CellsOf(token)[word] & cells[word]);
      return count;
    };
    uint64_t* all = all_.data();
    std::copy(CellsOf(first) + first_word_, CellsOf(first) + end_word_, all + first_word_);
    int end = first + 1;
    for (; end < limit && 2 * common(end, all) > common(end, CellsOf(end)); ++end)
      for (int64_t word = first_word_; word < end_word_; ++word) all[word] &= CellsOf(end)[word];
    return end;
  }

  // Adds separate blocks with the cells of `cells` without those of `except`, for some tokens.
  void RunList(const uint64_t* cells, const uint64_t* except, int first, int end, int64_t* blocks) {
    const int64_t spans = (words_ + kSpanBlocks - 1) / kSpanBlocks, count = AddCells(cells, except, 0, &list_);
    for (int64_t from = 0; from < count; from += kBlockCells) {
      const auto size = static_cast<int>(std::min<int64_t>(count - from, kBlockCells));
      int32_t* to = AddBlock((*blocks)++ % (spans * kSpanBlocks), first, end, 0, size);
      for (int i = 0; i < size; ++i) to[i] = LiesAt(list_[static_cast<size_t>(from + i)]);
    }
  }

  // Adds the cells of a cache that sequences share, in the order of positions, so that blocks have the cells that they would have in a
  // cache of a single sequence. Blocks that several tokens see whole, such as a common prompt, are read for all of them at once.
  void RunShared(int begin, int limit) {
    for (int first = begin, end; first < limit; first = end) {
      end = EndOfSharers(first, limit);
      const uint64_t* all = end - first > 1 ? all_.data() : nullptr;
      int64_t shared = 0, joint = 0;
      if (all) {
        shared = SortedOf(&shared_, AddCells(all, nullptr, 0, &shared_)).count;
        joint = JointCells(shared, first, end);
        RunSorted(SortedOf(&shared_, joint), first, end);
      }
      for (int token = first; token < end; ++token) {
        list_.assign(shared_.begin() + joint, shared_.begin() + shared);
        RunSorted(SortedOf(&list_, AddCells(CellsOf(token), all, shared - joint, &list_)), token, token + 1);
      }
      Cut(end);
    }
  }

  // Puts the cells of `cells` without those of `except` after the first `count` of a list. Returns the new number of cells.
  int64_t AddCells(const uint64_t* cells, const uint64_t* except, int64_t count, std::vector<int32_t>* list) const {
    list->resize(static_cast<size_t>(count));
    for (int64_t word = first_word_; word < end_word_; ++word)
      for (uint64_t bits = cells[word] & ~(except ? except[word] : 0); bits; bits &= bits - 1)
        list->push_back(static_cast<int32_t>(word * kBlockCells + std::countr_zero(bits)));
    return static_cast<int64_t>(list->size());
  }

  // Sorts the first cells of a list, which is mostly sorted already. Positions of cells that no pass has written, such as those of a loaded
  // cache, may be wrong. If two are equal, or one is not in the cache, the cells are numbered from 0.
  Sorted SortedOf(std::vector<int32_t>* cells, int64_t count) const {
    if (count == 0) return {};
    int32_t* list = cells->data();
    const auto is_ascending = [&] {
      for (int64_t i = 1; i < count; ++i)
        if (PositionOf(list[i - 1]) >= PositionOf(list[i])) return false;
      return true;
    };
    bool is_known = is_ascending();
    if (!is_known) {
      std::stable_sort(list, list + count, [this](int32_t a, int32_t b) { return PositionOf(a) < PositionOf(b); });
      is_known = is_ascending();
    }
    const int64_t first = PositionOf(list[0]), last = PositionOf(list[count - 1]);
    is_known = is_known && first >= 0 && last < words_ * kBlockCells;
    return {list, count, !is_known ? 0 : last - first == count - 1 ? first : -1, is_known};
  }

  // Returns the number of shared cells that fill blocks in which these tokens see no other cell.
  int64_t JointCells(int64_t shared, int first, int end) const {
    if (shared == 0) return 0;
    const auto position = [&](int64_t i) { return PositionOf(shared_[static_cast<size_t>(i)]); };
    int64_t next = 1;
    while (next < shared && position(next) == position(next - 1) + 1) ++next;
    int64_t limit = position(next - 1) + 1;
    for (int token = first; token < end; ++token)
      for (int64_t word = first_word_; word < end_word_; ++word)
        for (uint64_t bits = CellsOf(token)[word] & ~all_[static_cast<size_t>(word)]; bits; bits &= bits - 1)
          limit = std::min(limit, PositionOf(static_cast<int32_t>(word * kBlockCells + std::countr_zero(bits))));
    limit = limit / kBlockCells * kBlockCells;
    int64_t joint = 0;
    while (joint < shared && position(joint) < limit) ++joint;
    return joint;
  }

  // Adds blocks for tokens that see all or some of the cells.
  void RunSorted(const Sorted& sorted, int first, int end) {
    const auto place_of = [&](int64_t i) { return sorted.first >= 0 ? sorted.first + i : PositionOf(sorted.cells[i]); };
    for (int64_t i = 0, next; i < sorted.count; i = next) {
      const int64_t block = place_of(i) / kBlockCells;
      next = std::min(sorted.count, sorted.first >= 0 ? (block + 1) * kBlockCells - sorted.first : i + 1);
      while (next < sorted.count && place_of(next) / kBlockCells == block) ++next;
      RunBlock(sorted.cells, i, next, place_of, first, end);
    }
  }

  template <typename Place>
  void RunBlock(const int32_t* list, int64_t from, int64_t to, const Place& place_of, int first, int end) {
    const int64_t block = place_of(from) / kBlockCells;
    const auto first_place = static_cast<int>(place_of(from) % kBlockCells), end_place = static_cast<int>(place_of(to - 1) % kBlockCells) + 1;
    int32_t* cells = AddBlock(block, first, end, first_place, end_place);
    std::fill_n(cells, end_place, LiesAt(list[from]));
    for (int64_t i = from; i < to; ++i) cells[place_of(i) % kBlockCells] = LiesAt(list[i]);
    bool sees_all = end_place - first_place == to - from;
    for (int64_t i = from; i < to && sees_all && end - first > 1; ++i) sees_all = Sees(all_.data(), list[i]);
    if (sees_all) return;
    AddSeen(first, end, [&](int token) {
      uint64_t seen = 0;
      for (int64_t i = from; i < to; ++i) seen |= uint64_t{Sees(CellsOf(token), list[i])} << (place_of(i) % kBlockCells);
      return seen;
    });
  }

  const Attention& attention_;
  const Kernels& kernels_;
  int64_t words_, first_word_ = 0, end_word_ = 0;  // words with cells that any token sees
  int first_token_ = 0, tokens_ = 0;
  std::vector<uint64_t> bits_, any_, all_;  // (tokens, words) cells that each token sees; (words) cells that any, and that all, of some tokens see
  std::vector<int32_t> list_, shared_;
  CellOrder* order_ = nullptr;
};

// Splits a group into `count` groups with about the same number of cells, between tokens that share no block.
void Split(const TokenGroup& group, int64_t count, std::vector<TokenGroup>* groups) {
  const CellOrder& order = *group.order;
  const size_t least = order.cells.size() / static_cast<size_t>(std::max<int64_t>(count, 1));
  TokenGroup part = group;
  size_t first_cell = 0;
  for (const CellOrder::Cut& cut : order.cuts) {
    const bool is_last = cut.end_token == group.end_token;
    if (!is_last && (count <= 1 || cut.end_cell - first_cell < least)) continue;
    part.end_token = cut.end_token;
    part.end_block = cut.end_block;
    groups->push_back(part);
    part.first_token = part.end_token;
    part.first_block = part.end_block;
    first_cell = cut.end_cell;
  }
}

}  // namespace

void SetOrder(const Attention& attention, const Kernels& kernels, TokenGroup* group, CellOrder* order) {
  Ordering(attention, kernels).Make(group, order);
}

const CellOrders* GraphOrders::Of(const Attention& attention, const Kernels& kernels, int threads) {
  if (is_ended_) {
    is_ended_ = false;
    ++graph_;
    if (entries_.size() > kMostMasks) entries_.clear();
  }
  const Division division(attention, threads);
  const bool has_positions = attention.positions != nullptr;
  const int64_t streams = attention.mask_stream == 0 ? 1 : attention.streams;
  const auto count = static_cast<size_t>(streams * division.token_groups);
  Entry* old = nullptr;
  for (auto [it, end] = entries_.equal_range(attention.mask); it != end; ++it) {
    Entry& entry = it->second;
    if (entry.graph != graph_) old = &entry;
    else if (entry.orders.orders.size() == count && entry.has_positions == has_positions) return &entry.orders;
  }
  Entry& entry = old ? *old : entries_.emplace(attention.mask, Entry{})->second;
  entry.graph = graph_;
  entry.has_positions = has_positions;
  CellOrders& orders = entry.orders;
  orders.orders.resize(count);
  orders.groups.clear();
  orders.spans = orders.most_tokens = 0;
  Ordering ordering(attention, kernels);
  for (size_t i = 0; i < count; ++i) {
    TokenGroup group = division.GroupOf(attention, static_cast<int64_t>(i));
    ordering.Make(&group, &orders.orders[i]);
    for (const CellBlock& block : orders.orders[i].blocks) orders.spans = std::max(orders.spans, block.span + 1);
    Split(group, LeastTasks(threads) / static_cast<int64_t>(count), &orders.groups);
  }
  for (const TokenGroup& group : orders.groups) orders.most_tokens = std::max<int64_t>(orders.most_tokens, group.end_token - group.first_token);
  for (size_t i = 0, one = orders.groups.size(); streams < attention.streams && i < one * static_cast<size_t>(attention.streams - 1); ++i) {
    orders.groups.push_back(orders.groups[i]);
    ++orders.groups.back().stream;
  }
  return &orders;
}

}  // namespace onpolicy::attention
