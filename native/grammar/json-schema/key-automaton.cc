// A sorted list is a trie whose nodes are ranges. A merge-sort tree of the ranks finds keys in a range of both; sets count their elements in a
// range.
#include "grammar/json-schema/key-automaton.h"

#include <algorithm>

namespace onpolicy::grammar {

KeyAutomaton::KeyAutomaton(std::vector<Key> keys) : keys_(std::move(keys)) {
  for (Key& key : keys_) key.spelling.push_back('"');
  std::sort(keys_.begin(), keys_.end(), [](const Key& a, const Key& b) { return a.spelling < b.spelling; });
}

OrderedKeys::OrderedKeys(std::vector<Key> given) : KeyAutomaton(std::move(given)) {
  ranks_.emplace_back();
  for (const Key& key : keys()) ranks_[0].push_back(key.rank);
  for (size_t width = 1; width < keys().size(); width *= 2) {
    std::vector<uint32_t> merged(keys().size());
    const std::vector<uint32_t>& before = ranks_.back();
    for (size_t at = 0; at < keys().size(); at += 2 * width) {
      const auto begin = before.begin() + static_cast<std::ptrdiff_t>(at);
      const auto middle = before.begin() + static_cast<std::ptrdiff_t>(std::min(at + width, keys().size()));
      const auto end = before.begin() + static_cast<std::ptrdiff_t>(std::min(at + 2 * width, keys().size()));
      std::merge(begin, middle, middle, end, merged.begin() + static_cast<std::ptrdiff_t>(at));
    }
    ranks_.push_back(std::move(merged));
  }
}

bool OrderedKeys::HasKey(uint32_t begin, uint32_t end, uint32_t from, uint32_t to) const {
  // Visits the largest aligned blocks from `begin` on.
  while (begin < end) {
    size_t level = 0;
    while (level + 1 < ranks_.size() && begin % (2u << level) == 0 && begin + (2u << level) <= end) level++;
    const auto block = ranks_[level].begin() + begin, block_end = block + (1u << level);
    const auto rank = std::lower_bound(block, block_end, from);
    if (rank != block_end && *rank <= to) return true;
    begin += 1u << level;
  }
  return false;
}

std::vector<uint32_t> LooseKeys::Tags() const {
  std::vector<uint32_t> tags;
  for (const Key& key : keys()) tags.push_back(key.tag);
  return tags;
}

uint32_t KeyAutomaton::StateOf(const State& state) {
  const uint64_t hash = MixBits(PairKey(state.from, state.to) ^ MixBits(state.node));
  const uint32_t known = state_index_.FindHash(hash, [&](uint32_t at) { return states_[at] == state; });
  if (known != HashIndex::kNone) return known;
  const uint32_t made = static_cast<uint32_t>(states_.size());
  states_.push_back(state);
  state_index_.AddHash(hash, made);
  return made;
}

uint32_t KeyAutomaton::NodeOf(const Node& node) {
  const uint64_t hash = MixBits(PairKey(node.begin, node.end) ^ MixBits(node.depth));
  const uint32_t known = node_index_.FindHash(hash, [&](uint32_t at) { return nodes_[at] == node; });
  if (known != HashIndex::kNone) return known;
  const uint32_t made = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back(node);
  node_index_.AddHash(hash, made);
  return made;
}

uint32_t KeyAutomaton::Start(uint32_t from, uint32_t to) {
  const Node root{0, static_cast<uint32_t>(keys_.size()), 0};
  return HasKey(root.begin, root.end, from, to) ? StateOf({NodeOf(root), from, to}) : kDead;
}

uint8_t KeyAutomaton::ByteAt(uint32_t key, uint32_t depth) const { return static_cast<uint8_t>(keys_[key].spelling[depth]); }

KeyAutomaton::Node KeyAutomaton::Child(const Node& node, uint8_t byte) const {
  const auto first = keys_.begin() + node.begin, last = keys_.begin() + node.end;
  const auto byte_of = [&](const Key& key) { return static_cast<uint8_t>(key.spelling[node.depth]); };
  const auto begin = std::lower_bound(first, last, byte, [&](const Key& key, uint8_t wanted) { return byte_of(key) < wanted; });
  const auto end = std::upper_bound(begin, last, byte, [&](uint8_t wanted, const Key& key) { return wanted < byte_of(key); });
  return {static_cast<uint32_t>(begin - keys_.begin()), static_cast<uint32_t>(end - keys_.begin()), node.depth + 1};
}

uint32_t KeyAutomaton::Next(uint32_t number, uint8_t byte) {
  const State state = states_[number];
  if (state.node == kEnded) return kDead;
  const Node child = Child(nodes_[state.node], byte);
  if (!HasKey(child.begin, child.end, state.from, state.to)) return kDead;
  // A spelling contains a quotation mark only behind a backslash, which is another path.
  if (child.end - child.begin == 1 && keys_[child.begin].spelling.size() == child.depth) return StateOf({kEnded, child.begin, 0});
  return StateOf({NodeOf(child), Reduced(child.begin, child.end, state.from), state.to});
}

ByteSet KeyAutomaton::First(uint32_t number) {
  const State state = states_[number];
  ByteSet first;
  if (state.node == kEnded) return first;
  const Node node = nodes_[state.node];
  for (uint32_t begin = node.begin; begin < node.end;) {
    const Node child = Child({begin, node.end, node.depth}, ByteAt(begin, node.depth));
    if (HasKey(child.begin, child.end, state.from, state.to)) first.Add(ByteAt(begin, node.depth));
    begin = child.end;
  }
  return first;
}

}  // namespace onpolicy::grammar
