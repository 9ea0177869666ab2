// Sets of numbers below a bound -> one number for each different set. A set is a binary trie that shares its equal parts with other sets, so
// that a set with one more element costs log n, and is compared by its number.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

#include "base/hash-index.h"

namespace onpolicy::grammar {

using KeySet = uint32_t;  // 0 is the empty set

class KeySets {
 public:
  // Elements are below `bound`.
  explicit KeySets(uint32_t bound) : levels_(bound > 1 ? std::bit_width(bound - 1) : 0) {}

  KeySet With(KeySet set, uint32_t element) { return With(set, element, levels_); }
  bool Has(KeySet set, uint32_t element) const { return CountBelow(set, element + 1) > CountBelow(set, element); }
  // Returns the number of elements in [begin, end).
  uint32_t Count(KeySet set, uint32_t begin, uint32_t end) const { return CountBelow(set, end) - CountBelow(set, begin); }

 private:
  // The elements whose bit at this level is 0, and those whose bit is 1.
  struct Node {
    KeySet left, right;
    uint32_t count;
  };

  KeySet With(KeySet set, uint32_t element, int level);
  uint32_t CountBelow(KeySet set, uint32_t bound) const;

  int levels_;
  std::vector<Node> nodes_{{0, 0, 0}, {0, 0, 1}};  // the empty set, and a single element at the lowest level
  HashIndex index_;
};

}  // namespace onpolicy::grammar
