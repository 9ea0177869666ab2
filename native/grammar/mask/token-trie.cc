// The lists of children of wide nodes.
#include "grammar/mask/token-trie.h"

#include <algorithm>

namespace onpolicy::grammar {

// Children of a node from which on they are listed.
static constexpr unsigned kWide = 12;

void TokenTrie::ListChildren() {
  for (uint32_t node = 0; node < trie.size(); node++) {
    WideNode made{node, {}, static_cast<uint32_t>(children.size())};
    for (uint32_t child = node + 1; child < trie[node].end; child = trie[child].end) {
      made.bytes.Add(trie[child].byte);
      children.push_back(child);
    }
    trie[node].is_wide = children.size() - made.first >= kWide;
    if (trie[node].is_wide) {
      wide.push_back(made);
    } else {
      children.resize(made.first);
    }
  }
  wide.shrink_to_fit();
  children.shrink_to_fit();
}

const WideNode& TokenTrie::WideOf(uint32_t node) const {
  return *std::lower_bound(wide.begin(), wide.end(), node, [](const WideNode& known, uint32_t key) { return known.node < key; });
}

uint32_t GrowingTrie::Child(uint32_t parent, uint8_t byte) {
  const uint32_t recent = nodes_[parent].recent;
  const bool is_behind = recent != kNone && nodes_[recent].byte <= byte;
  if (is_behind && nodes_[recent].byte == byte) return recent;
  uint32_t before = is_behind ? recent : kNone, at = is_behind ? nodes_[recent].next : nodes_[parent].child;
  while (at != kNone && nodes_[at].byte < byte) {
    before = at;
    at = nodes_[at].next;
  }
  if (at == kNone || nodes_[at].byte != byte) {
    const uint32_t made = static_cast<uint32_t>(nodes_.size());
    nodes_.emplace_back();
    nodes_[made].byte = byte;
    nodes_[made].next = at;
    (before == kNone ? nodes_[parent].child : nodes_[before].next) = made;
    at = made;
  }
  return nodes_[parent].recent = at;
}

void GrowingTrie::AddToken(std::string_view bytes, uint32_t token) {
  uint32_t here = 0;
  for (char byte : bytes) here = Child(here, static_cast<uint8_t>(byte));
  nodes_[here].tokens.push_back(token);
}

void GrowingTrie::AddSubtree(const TokenTrie& from, uint32_t root) {
  const uint32_t depth = from.trie[root].depth;
  path_.assign(1, 0);
  for (uint32_t at = root; at < from.trie[root].end; at++) {
    const TrieNode& node = from.trie[at];
    uint32_t here = 0;
    if (at > root) {
      path_.resize(node.depth - depth);
      here = Child(path_.back(), node.byte);
      path_.push_back(here);
    }
    nodes_[here].tokens.insert(nodes_[here].tokens.end(), from.tokens.begin() + from.tokens_before[at],
                               from.tokens.begin() + from.tokens_before[at + 1]);
  }
}

TokenTrie GrowingTrie::Flat() const {
  TokenTrie result;
  struct Open {
    uint32_t node, place;
  };
  std::vector<Open> open;
  for (uint32_t next = 0; next != kNone;) {
    TrieNode node;
    node.byte = nodes_[next].byte;
    node.depth = static_cast<uint16_t>(open.size());
    result.tokens_before.push_back(static_cast<uint32_t>(result.tokens.size()));
    result.tokens.insert(result.tokens.end(), nodes_[next].tokens.begin(), nodes_[next].tokens.end());
    open.push_back({next, static_cast<uint32_t>(result.trie.size())});
    result.trie.push_back(node);
    next = nodes_[next].child;
    while (next == kNone && !open.empty()) {
      result.trie[open.back().place].end = static_cast<uint32_t>(result.trie.size());
      next = nodes_[open.back().node].next;
      open.pop_back();
    }
  }
  result.tokens_before.push_back(static_cast<uint32_t>(result.tokens.size()));
  result.ListChildren();
  return result;
}

}  // namespace onpolicy::grammar
