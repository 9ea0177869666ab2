// A hash table from 64-bit keys to numbers, without deletion: one array, no allocation per entry.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace onpolicy::grammar {

// A different number for every different key, with all bits well spread.
inline uint64_t MixBits(uint64_t key) {
  key = (key ^ (key >> 32)) * 0x9E3779B97F4A7C15ull;
  key = (key ^ (key >> 29)) * 0xBF58476D1CE4E5B9ull;
  return key ^ (key >> 32);
}
inline uint64_t PairKey(uint32_t high, uint32_t low) { return (static_cast<uint64_t>(high) << 32) | low; }

// `Hash`: the stored part of a hash. With 32 bits only FindHash can tell entries apart.
template <typename Hash>
class BasicHashIndex {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;

  // The first value under `hash` for which `is_same(value)` is true, or kNone.
  template <typename IsSame>
  uint32_t FindHash(uint64_t hash, IsSame is_same) const {
    if (slots_.empty()) return kNone;
    const size_t last = slots_.size() - 1;
    for (size_t at = hash & last; slots_[at].value != kNone; at = (at + 1) & last)
      if (slots_[at].hash == static_cast<Hash>(hash) && is_same(slots_[at].value)) return slots_[at].value;
    return kNone;
  }
  // Adds a value under `hash`; values must differ from kNone.
  void AddHash(uint64_t hash, uint32_t value) {
    if (count_ * 2 >= slots_.size()) Grow();
    count_++;
    Place({static_cast<Hash>(hash), value});
  }
  // The same functions for whole keys instead of hashes.
  uint32_t Find(uint64_t key) const {
    return FindHash(MixBits(key), [](uint32_t) { return true; });
  }
  void Add(uint64_t key, uint32_t value) { AddHash(MixBits(key), value); }
  // Adds or replaces the value of a key.
  void Set(uint64_t key, uint32_t value) {
    const uint64_t hash = MixBits(key);
    if (!slots_.empty()) {
      const size_t last = slots_.size() - 1;
      for (size_t at = hash & last; slots_[at].value != kNone; at = (at + 1) & last)
        if (slots_[at].hash == hash) {
          slots_[at].value = value;
          return;
        }
    }
    AddHash(hash, value);
  }
  size_t size() const { return count_; }
  // Removes all entries, and frees a large table.
  void Clear() {
    if (slots_.size() > kSmall) slots_.resize(kSmall);
    for (Slot& slot : slots_) slot = {};
    count_ = 0;
  }

 private:
  static constexpr size_t kSmall = 64;
  struct Slot {
    Hash hash = 0;
    uint32_t value = kNone;
  };

  void Place(const Slot& slot) {
    const size_t last = slots_.size() - 1;
    size_t at = slot.hash & last;
    while (slots_[at].value != kNone) at = (at + 1) & last;
    slots_[at] = slot;
  }
  void Grow() {
    std::vector<Slot> old(slots_.empty() ? kSmall : slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.value != kNone) Place(slot);
  }

  std::vector<Slot> slots_;  // a power of two of them
  size_t count_ = 0;
};

using HashIndex = BasicHashIndex<uint64_t>;
// For entries that are compared anyway: half the size, so that growing costs half as much.
using SmallHashIndex = BasicHashIndex<uint32_t>;

}  // namespace onpolicy::grammar
