#include "grammar/json-schema/key-sets.h"

namespace onpolicy::grammar {

KeySet KeySets::With(KeySet set, uint32_t element, int level) {
  if (level == 0) return 1;
  Node node = nodes_[set];
  KeySet& half = (element >> (level - 1) & 1) ? node.right : node.left;
  half = With(half, element, level - 1);
  const uint64_t key = PairKey(node.left, node.right);
  const uint32_t known = index_.Find(key);
  if (known != HashIndex::kNone) return known;
  const KeySet made = static_cast<KeySet>(nodes_.size());
  node.count = nodes_[node.left].count + nodes_[node.right].count;
  nodes_.push_back(node);
  index_.Add(key, made);
  return made;
}

uint32_t KeySets::CountBelow(KeySet set, uint32_t bound) const {
  if (bound >> levels_ != 0) return nodes_[set].count;
  uint32_t count = 0;
  for (int level = levels_; level > 0 && set != 0; level--) {
    const Node& node = nodes_[set];
    if (bound >> (level - 1) & 1) {
      count += nodes_[node.left].count;
      set = node.right;
    } else {
      set = node.left;
    }
  }
  return count;
}

}  // namespace onpolicy::grammar
