// A set of bytes as four machine words: the label of one edge of a byte automaton.
#pragma once
#include <bit>
#include <cstdint>
#include <string_view>

namespace onpolicy::grammar {

struct ByteSet {
  uint64_t words[4] = {0, 0, 0, 0};

  static ByteSet All() { return {{~0ull, ~0ull, ~0ull, ~0ull}}; }
  static ByteSet Range(unsigned low, unsigned high) {
    ByteSet set;
    for (unsigned byte = low; byte <= high; byte++) set.Add(byte);
    return set;
  }
  static ByteSet Of(std::string_view bytes) {
    ByteSet set;
    for (char byte : bytes) set.Add(static_cast<uint8_t>(byte));
    return set;
  }
  void Add(unsigned byte) { words[byte >> 6] |= 1ull << (byte & 63); }
  bool Has(unsigned byte) const { return (words[byte >> 6] >> (byte & 63)) & 1; }
  bool IsEmpty() const { return !(words[0] | words[1] | words[2] | words[3]); }
  unsigned Count() const {
    return std::popcount(words[0]) + std::popcount(words[1]) + std::popcount(words[2]) + std::popcount(words[3]);
  }
  // Returns the lowest member. The set must not be empty.
  uint8_t Lowest() const {
    unsigned word = 0;
    while (!words[word]) word++;
    return static_cast<uint8_t>(word * 64 + static_cast<unsigned>(std::countr_zero(words[word])));
  }
  // Returns the number of members lower than `byte`.
  unsigned CountBelow(unsigned byte) const {
    unsigned count = static_cast<unsigned>(std::popcount(words[byte >> 6] & ((1ull << (byte & 63)) - 1)));
    for (unsigned word = 0; word < byte >> 6; word++) count += static_cast<unsigned>(std::popcount(words[word]));
    return count;
  }
  ByteSet operator&(const ByteSet& other) const {
    return {{words[0] & other.words[0], words[1] & other.words[1], words[2] & other.words[2], words[3] & other.words[3]}};
  }
  ByteSet operator|(const ByteSet& other) const {
    return {{words[0] | other.words[0], words[1] | other.words[1], words[2] | other.words[2], words[3] | other.words[3]}};
  }
  ByteSet operator~() const { return {{~words[0], ~words[1], ~words[2], ~words[3]}}; }
  bool operator==(const ByteSet& other) const = default;

  // Calls `visit(byte)` for each member, lowest first.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (unsigned word = 0; word < 4; word++)
      for (uint64_t rest = words[word]; rest; rest &= rest - 1) visit(word * 64 + std::countr_zero(rest));
  }
};

}  // namespace onpolicy::grammar
