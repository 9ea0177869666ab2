// A part of attention, by the rows of some tokens and heads -> which cells each row sees, in which order, and its sums over them.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "attention/seen-cells.h"

namespace onpolicy::attention {

constexpr int kMostRows = 256;        // of a task: a block of keys, its values, the rows and their sums stay in the cache
constexpr int kMostTokens = 128;      // of a task
constexpr int kMixedTokens = 16;      // of several sequences, which are computed together
constexpr int64_t kSpanBlocks = 16;   // blocks whose sums begin anew
constexpr float kUnseen = -std::numeric_limits<float>::infinity();

// A row's sums over some cells: the largest score, the sum of weights relative to it, and the weighted values. `to` then covers both.
inline void Add(const float* from, int width, float* to) {
  if (from[0] == kUnseen) return;
  if (to[0] == kUnseen) {
    std::memcpy(to, from, (2 + static_cast<size_t>(width)) * sizeof(float));
    return;
  }
  const float largest = std::max(from[0], to[0]);
  const float old_factor = std::exp(to[0] - largest), new_factor = std::exp(from[0] - largest);
  to[0] = largest;
  for (int i = 1; i < 2 + width; ++i) to[i] = to[i] * old_factor + from[i] * new_factor;
}

// Query rows of some tokens and of the heads that share keys.
struct Plan::Rows {
  int64_t stream, first_token, first_head, kv_head;
  int tokens, heads;

  int count() const { return tokens * heads; }
};

// A thread's memory.
struct Plan::Scratch {
  float *scores, *largest, *sums, *y, *part, *keys, *values;
  int32_t *index, *shared, *list;  // (kBlockCells), (cells), (cells)
  uint64_t *seen, *any, *all, *seen_of_block;  // (tokens, words), (words), (words), (tokens): bits of cells
};

// The rows of one task, over all spans or one of them.
class Plan::Task {
 public:
  Task(const Plan& plan, const Kernels& kernels, const Rows& rows, const Scratch& scratch, Seen* seen)
      : plan_(plan), attention_(plan.attention_), kernels_(kernels), rows_(rows), scratch_(scratch) {
    const Attention& a = attention_;
    for (int token = 0; token < rows.tokens; ++token)
      for (int head = 0; head < rows.heads; ++head)
        q_[token * rows.heads + head] = reinterpret_cast<const float*>(
            a.q + static_cast<size_t>(rows.stream) * a.q_stream + static_cast<size_t>(rows.first_token + token) * a.q_token +
            static_cast<size_t>(rows.first_head + head) * a.q_head);
    const auto stream = static_cast<size_t>(rows.stream), kv_head = static_cast<size_t>(rows.kv_head);
    block_.heads = rows.heads;
    block_.k = a.k + stream * a.k_stream + kv_head * a.k_head;
    block_.v = a.v + stream * a.v_stream + kv_head * a.v_head;
    block_.k_stride = a.k_cell;
    block_.v_stride = a.v_cell;
    block_.index = scratch.index;
    block_.scale = a.scale;
    block_.cap = a.cap;
    block_.keys = scratch.keys;
    block_.values = scratch.values;
    block_.k_vectors = a.k_width / kLanes;
    block_.v_vectors = a.v_width / kLanes;
    block_.k_fetched = FetchedOf(a.k_head, a.k_cell);
    block_.v_fetched = FetchedOf(a.v_head, a.v_cell);
    const int64_t tokens = rows.stream * a.tokens + rows.first_token;
    const SeenCells* masked = a.seen;
    first_word_ = masked ? masked->first_word : 0;
    end_word_ = masked ? masked->end_word : plan.words_;
    cells_ = masked ? masked->bits.data() + (a.mask_stream == 0 ? rows.first_token : tokens) * plan.words_ : scratch.seen;
    if (seen->tokens != tokens) {
      if (!masked) ReadSeen(a, kernels, rows.stream, rows.first_token, rows.tokens, scratch.seen);
      *seen = {tokens, Gather(0, rows.tokens)};
    }
    seen_ = seen;
  }

  // The parts of all rows: the span `only`, or all of them if it is negative.
  void Run(int64_t only, float* parts) {
    for (int row = 0; row < rows_.count(); ++row) parts[static_cast<size_t>(row) * plan_.part_floats_] = kUnseen;
    only_ = only;
    parts_ = parts;
    std::fill_n(span_, rows_.tokens, kNoSpan);
    if (seen_->together.is_one_sequence) RunTogether(seen_->together, 0, rows_.tokens);
    for (int first = 0, end; first < rows_.tokens && !seen_->together.is_one_sequence; first = end) {
      end = EndOfSequence(first);
      if (end - first < kMixedTokens) end = std::min(first + kMixedTokens, rows_.tokens);
      RunTogether(Gather(first, end), first, end);
    }
    for (int token = 0; token < rows_.tokens; ++token) EndSpan(token);
  }

 private:
  static constexpr int64_t kNoSpan = -1;

  // Bytes of a cell that this task fetches: if cells are read once, the first head of a batch fetches all heads.
  int FetchedOf(size_t head, size_t cell) const {
    if (head >= cell) return 0;
    if (!plan_.reads_cells_once_) return static_cast<int>(head);
    return rows_.kv_head % plan_.batch_ == 0 ? static_cast<int>(plan_.batch_) * static_cast<int>(head) : 0;
  }

  // Which cells any and all of some tokens see; and whether they are tokens of one sequence, and where its cells lie.
  Together Gather(int first, int end) {
    int64_t first_word = end_word_, last = -1, count = 0;
    for (int64_t word = first_word_; word < end_word_; ++word) {
      uint64_t any = 0, all = ~uint64_t{0};
      for (int token = first; token < end; ++token) {
        any |= CellsOf(token)[word];
        all &= CellsOf(token)[word];
      }
      scratch_.any[word] = any;
      scratch_.all[word] = all;
      if (!any) continue;
      first_word = std::min(first_word, word);
      last = word;
      count += std::popcount(any);
    }
    Together together;
    if (EndOfSequence(first) < end) return together;
    if (!attention_.positions) {
      const int64_t begin = first_word * kBlockCells + (last < 0 ? 0 : std::countr_zero(scratch_.any[first_word]));
      together.is_one_sequence = last < 0 || count == (last + 1) * kBlockCells - std::countl_zero(scratch_.any[last]) - begin;
    } else {
      const Sorted sorted = SortedOf(scratch_.list, AddCells(scratch_.any, nullptr, scratch_.list));
      together = {sorted.is_known, sorted.count, sorted.first};
    }
    return together;
  }

  // The tokens from `first` on of which each sees what the one before it does but for one cell that came and one that left its window -> their
  // end. Two sequences with so similar cells may as well be computed as one.
  int EndOfSequence(int first) const {
    const auto is_second = [](uint64_t bits, bool* has_one) { return bits && ((bits & (bits - 1)) || std::exchange(*has_one, true)); };
    for (int token = first + 1; token < rows_.tokens; ++token) {
      bool has_come = false, has_left = false;
      for (int64_t word = first_word_; word < end_word_; ++word) {
        const uint64_t before = CellsOf(token - 1)[word], now = CellsOf(token)[word];
        if (is_second(now & ~before, &has_come) || is_second(before & ~now, &has_left)) return token;
      }
    }
    return rows_.tokens;
  }

  void RunTogether(const Together& together, int first, int end) {
    if (!attention_.positions) return together.is_one_sequence ? RunRange(first, end) : RunLists(first, end);
    if (together.is_one_sequence) RunSorted({scratch_.list, together.listed, together.first, true}, first, end);
    else RunShared(first, end);
  }

  // Whether the block belongs to what is computed of these tokens; ends their span before it.
  bool Enter(int64_t block, int first, int end) {
    const int64_t span = block / kSpanBlocks;
    if (only_ >= 0 && span != only_) return false;
    for (int token = first; token < end; ++token) {
      if (span_[token] == span) continue;
      EndSpan(token);
      span_[token] = span;
      const int row = token * rows_.heads;
      std::fill_n(scratch_.largest + row, rows_.heads, kUnseen);
      std::fill_n(scratch_.sums + row * kLanes, rows_.heads * kLanes, 0.0f);
      std::fill_n(scratch_.y + row * attention_.v_width, rows_.heads * attention_.v_width, 0.0f);
    }
    return true;
  }

  // Adds the sums of a token's span to its parts.
  void EndSpan(int token) {
    if (span_[token] == kNoSpan) return;
    const int width = attention_.v_width;
    float* one = parts_ + static_cast<size_t>(rows_.count()) * plan_.part_floats_;  // see Run: room for one more
    for (int row = token * rows_.heads; row < (token + 1) * rows_.heads; ++row) {
      if (scratch_.largest[row] == kUnseen) continue;
      one[0] = scratch_.largest[row];
      one[1] = kernels_.sum(scratch_.sums + row * kLanes);
      std::memcpy(one + 2, scratch_.y + row * width, static_cast<size_t>(width) * sizeof(float));
      Add(one, width, parts_ + static_cast<size_t>(row) * plan_.part_floats_);
    }
  }

  // Blocks of kBlockCells by their place in the cache. What a row does not see has a weight of zero, and adds nothing.
  void RunRange(int first, int end) {
    for (int64_t word = first_word_; word < end_word_; ++word) {
      const uint64_t any = scratch_.any[word];
      if (!any || !Enter(word, first, end)) continue;
      block_.first = std::countr_zero(any);
      block_.end = kBlockCells - std::countl_zero(any);
      for (int i = 0; i < block_.end; ++i) scratch_.index[i] = PlaceOf(word * kBlockCells + i);
      block_.seen = any == scratch_.all[word] ? nullptr : scratch_.seen_of_block;
      for (int token = first; token < end && block_.seen; ++token) scratch_.seen_of_block[token - first] = CellsOf(token)[word];
      Attend(first, end);
    }
  }

  // In a cache that sequences share, cells of one lie beside or between those of others. What several tokens see, as a common prompt, is read
  // for all of them at once, and then what each of them sees alone.
  void RunLists(int begin, int limit) {
    block_.seen = nullptr;
    block_.first = 0;
    int64_t blocks = 0;
    for (int first = begin, end; first < limit; first = end) {
      end = EndOfSharers(first, limit);
      if (end - first > 1) RunList(scratch_.all, nullptr, first, end, &blocks);
      for (int token = first; token < end; ++token)
        RunList(CellsOf(token), end - first > 1 ? scratch_.all : nullptr, token, token + 1, &blocks);
    }
  }

  const uint64_t* CellsOf(int token) const { return cells_ + token * plan_.words_; }
  int32_t PlaceOf(int64_t cell) const { return attention_.places ? attention_.places[cell] : static_cast<int32_t>(cell); }

  // The tokens from `first` to `limit` with mostly the same cells -> their end; `all` are the cells they share.
  int EndOfSharers(int first, int limit) {
    const auto common = [&](int token, const uint64_t* cells) {
      int64_t count = 0;
      for (int64_t word = first_word_; word < end_word_; ++word) count += std::popcount(CellsOf(token)[word] & cells[word]);
      return count;
    };
    std::copy(CellsOf(first) + first_word_, CellsOf(first) + end_word_, scratch_.all + first_word_);
    int end = first + 1;
    for (; end < limit && 2 * common(end, scratch_.all) > common(end, CellsOf(end)); ++end)
      for (int64_t word = first_word_; word < end_word_; ++word) scratch_.all[word] &= CellsOf(end)[word];
    return end;
  }

  // The cells of `cells` without those of `except`, in blocks of their own, for some tokens.
  void RunList(const uint64_t* cells, const uint64_t* except, int first, int end, int64_t* blocks) {
    int count = 0;
    const auto flush = [&] {
      block_.end = std::exchange(count, 0);
      if (block_.end > 0 && Enter((*blocks)++ % (plan_.spans_ * kSpanBlocks), first, end)) Attend(first, end);
    };
    for (int64_t word = first_word_; word < end_word_; ++word)
      for (uint64_t bits = cells[word] & ~(except ? except[word] : 0); bits; bits &= bits - 1) {
        scratch_.index[count++] = PlaceOf(word * kBlockCells + std::countr_zero(bits));
        if (count == kBlockCells) flush();
      }
    flush();
  }

  // Cells in the order of positions, which are `first` + i, or if that is below 0 those of the cells.
  struct Sorted {
    const int32_t* cells = nullptr;
    int64_t count = 0, first = 0;
    bool is_known = true;  // false: positions do not tell the cells apart
  };

  // The cells of a cache that sequences share, in the order of positions: blocks of positions have the cells that they would have in a cache
  // of the sequence's own. Blocks that several tokens see whole, as those of a common prompt, are read for all of them at once.
  void RunShared(int begin, int limit) {
    for (int first = begin, end; first < limit; first = end) {
      end = EndOfSharers(first, limit);
      const uint64_t* all = end - first > 1 ? scratch_.all : nullptr;
      int64_t shared = 0, joint = 0;
      if (all) {
        shared = SortedOf(scratch_.shared, AddCells(all, nullptr, scratch_.shared)).count;
        joint = JointCells(shared, first, end);
        RunSorted(SortedOf(scratch_.shared, joint), first, end);
      }
      for (int token = first; token < end; ++token) {
        std::copy(scratch_.shared + joint, scratch_.shared + shared, scratch_.list);
        const int64_t rest = shared - joint;
        RunSorted(SortedOf(scratch_.list, rest + AddCells(CellsOf(token), all, scratch_.list + rest)), token, token + 1);
      }
    }
  }

  // Appends the cells of `cells` without those of `except` -> their number.
  int64_t AddCells(const uint64_t* cells, const uint64_t* except, int32_t* list) const {
    int64_t count = 0;
    for (int64_t word = first_word_; word < end_word_; ++word)
      for (uint64_t bits = cells[word] & ~(except ? except[word] : 0); bits; bits &= bits - 1)
        list[count++] = static_cast<int32_t>(word * kBlockCells + std::countr_zero(bits));
    return count;
  }

  int64_t PositionOf(int32_t cell) const { return attention_.positions[cell]; }

  // Sorts a list, which mostly is in this order. Positions of cells that no pass has written, as those of a loaded cache, may be wrong: where two
  // are equal, or one is not in the cache, the cells count from 0 on.
  Sorted SortedOf(int32_t* list, int64_t count) const {
    if (count == 0) return {};
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
    is_known = is_known && first >= 0 && last < plan_.words_ * kBlockCells;
    return {list, count, !is_known ? 0 : last - first == count - 1 ? first : -1, is_known};
  }

  // How many of the shared cells fill blocks in which none of these tokens sees another cell.
  int64_t JointCells(int64_t shared, int first, int end) const {
    if (shared == 0) return 0;
    int64_t next = 1;
    while (next < shared && PositionOf(scratch_.shared[next]) == PositionOf(scratch_.shared[next - 1]) + 1) ++next;
    int64_t limit = PositionOf(scratch_.shared[next - 1]) + 1;
    for (int token = first; token < end; ++token)
      for (int64_t word = first_word_; word < end_word_; ++word)
        for (uint64_t bits = CellsOf(token)[word] & ~scratch_.all[word]; bits; bits &= bits - 1)
          limit = std::min(limit, PositionOf(static_cast<int32_t>(word * kBlockCells + std::countr_zero(bits))));
    limit = limit / kBlockCells * kBlockCells;
    int64_t joint = 0;
    while (joint < shared && PositionOf(scratch_.shared[joint]) < limit) ++joint;
    return joint;
  }

  // For tokens that see all or some of the cells.
  void RunSorted(const Sorted& sorted, int first, int end) {
    const auto place_of = [&](int64_t i) { return sorted.first >= 0 ? sorted.first + i : PositionOf(sorted.cells[i]); };
    int64_t i = 0, next;
    if (only_ >= 0 && sorted.first >= 0) i = std::max<int64_t>(0, only_ * kSpanBlocks * kBlockCells - sorted.first);
    for (; i < sorted.count; i = next) {
      const int64_t block = place_of(i) / kBlockCells;
      next = std::min(sorted.count, sorted.first >= 0 ? (block + 1) * kBlockCells - sorted.first : i + 1);
      while (next < sorted.count && place_of(next) / kBlockCells == block) ++next;
      if (Enter(block, first, end)) RunBlock(sorted.cells, i, next, place_of, first, end);
      else if (only_ >= 0 && block / kSpanBlocks > only_) return;
    }
  }

  bool Sees(const uint64_t* cells, int32_t cell) const { return cells[cell / kBlockCells] >> (cell % kBlockCells) & 1; }

  template <typename Place>
  void RunBlock(const int32_t* list, int64_t from, int64_t to, const Place& place_of, int first, int end) {
    block_.first = static_cast<int>(place_of(from) % kBlockCells);
    block_.end = static_cast<int>(place_of(to - 1) % kBlockCells) + 1;
    std::fill_n(scratch_.index, block_.end, PlaceOf(list[from]));
    for (int64_t i = from; i < to; ++i) scratch_.index[place_of(i) % kBlockCells] = PlaceOf(list[i]);
    bool sees_all = block_.end - block_.first == to - from;
    for (int64_t i = from; i < to && sees_all && end - first > 1; ++i) sees_all = Sees(scratch_.all, list[i]);
    block_.seen = sees_all ? nullptr : scratch_.seen_of_block;
    for (int token = first; token < end && !sees_all; ++token) {
      uint64_t seen = 0;
      for (int64_t i = from; i < to; ++i) seen |= uint64_t{Sees(CellsOf(token), list[i])} << (place_of(i) % kBlockCells);
      scratch_.seen_of_block[token - first] = seen;
    }
    Attend(first, end);
  }

  void Attend(int first, int end) {
    const int row = first * rows_.heads;
    block_.q = q_ + row;
    block_.rows = (end - first) * rows_.heads;
    block_.scores = scratch_.scores;
    block_.largest = scratch_.largest + row;
    block_.sums = scratch_.sums + row * kLanes;
    block_.y = scratch_.y + row * attention_.v_width;
    kernels_.attend[static_cast<size_t>(attention_.type)](block_);
  }

  const Plan& plan_;
  const Attention& attention_;
  const Kernels& kernels_;
  const Rows& rows_;
  const Scratch& scratch_;
  const float* q_[kMostRows];
  Block block_{};
  const Seen* seen_ = nullptr;
  int64_t first_word_, end_word_;  // no token sees cells of other words
  const uint64_t* cells_;          // (tokens, words) bits of those that each token sees
  int64_t only_ = -1, span_[kMostTokens];
  float* parts_ = nullptr;
};

}  // namespace onpolicy::attention
