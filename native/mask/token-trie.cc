// The lists of children of wide nodes.
#include "mask/token-trie.h"

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

}  // namespace onpolicy::grammar
