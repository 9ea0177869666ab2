// A hash table for many entries that grows page by page: no single entry pays for the move of all others.
#pragma once
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/hash-index.h"

namespace onpolicy::grammar {

class PagedIndex {
 public:
  static constexpr uint32_t kNone = HashIndex::kNone;

  PagedIndex() { Clear(); }
  // The value of a key, or kNone.
  uint32_t Find(uint64_t key) const { return pages_[PageOf(key)]->entries.Find(key); }
  // Adds or replaces the value of a key.
  void Set(uint64_t key, uint32_t value) {
    while (pages_[PageOf(key)]->entries.size() >= kPageEntries) Split(PlaceOf(MixBits(key)));
    HashIndex& entries = pages_[PageOf(key)]->entries;
    count_ -= entries.size();
    entries.Set(key, value);
    count_ += entries.size();
  }
  size_t size() const { return count_; }
  void Clear() {
    pages_.clear();
    pages_.push_back(std::make_unique<Page>());
    directory_.assign(1, 0);
    bits_ = 0;
    count_ = 0;
  }

 private:
  static constexpr size_t kPageEntries = 255;
  struct Page {
    HashIndex entries;
    unsigned bits = 0;  // so many upper bits of all its hashes are the same
  };

  // The upper bits of a hash name a page; the lower ones the place in it.
  size_t PlaceOf(uint64_t hash) const { return bits_ == 0 ? 0 : static_cast<size_t>(hash >> (64 - bits_)); }
  uint32_t PageOf(uint64_t key) const { return directory_[PlaceOf(MixBits(key))]; }
  void Split(size_t place) {
    const uint32_t number = directory_[place], made = static_cast<uint32_t>(pages_.size());
    if (pages_[number]->bits == bits_) {
      std::vector<uint32_t> twice(directory_.size() * 2);
      for (size_t i = 0; i < twice.size(); i++) twice[i] = directory_[i / 2];
      directory_ = std::move(twice);
      place *= 2;
      bits_++;
    }
    const HashIndex all = std::exchange(pages_[number]->entries, {});
    const unsigned bits = ++pages_[number]->bits;
    pages_.push_back(std::make_unique<Page>());
    pages_[made]->bits = bits;
    // The places of a page are adjacent: the new page gets their second half.
    const size_t half = size_t{1} << (bits_ - bits), first = place & ~(2 * half - 1);
    std::fill_n(directory_.begin() + static_cast<std::ptrdiff_t>(first + half), half, made);
    all.ForEachHash([&](uint64_t hash, uint32_t value) { pages_[directory_[PlaceOf(hash)]]->entries.AddHash(hash, value); });
  }

  std::vector<std::unique_ptr<Page>> pages_;
  std::vector<uint32_t> directory_;  // by the upper bits of a hash
  unsigned bits_ = 0;                // how many of them
  size_t count_ = 0;
};

}  // namespace onpolicy::grammar
