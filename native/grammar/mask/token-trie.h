// Tokens -> a flat trie of their bytes in preorder, with lists of children for nodes that have many.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/regex/byte-set.h"

namespace onpolicy::grammar {

// One node: the subtree of node i is [i, end).
struct TrieNode {
  uint32_t end = 0;
  uint16_t depth = 0;     // number of bytes from the root, >= 1
  uint8_t byte = 0;
  bool is_wide = false;   // its children are listed
};

// The children of a node that has many, so that those whose bytes a state does not take are skipped.
struct WideNode {
  uint32_t node;
  ByteSet bytes;
  uint32_t first;  // index of the first child's number, in the order of the bytes
};

struct TokenTrie {
  std::vector<TrieNode> trie;
  std::vector<uint32_t> tokens;         // in the trie's order
  std::vector<uint32_t> tokens_before;  // (nodes + 1) tokens of earlier nodes; a node's own are those up to the next
  std::vector<WideNode> wide;           // in the trie's order
  std::vector<uint32_t> children;       // children of all wide nodes

  // Lists the children of wide nodes, once the trie is whole.
  void ListChildren();
  const WideNode& WideOf(uint32_t node) const;
  // Tokens of the nodes from one up to another.
  std::span<const uint32_t> TokensOf(uint32_t from, uint32_t to) const {
    return std::span(tokens).subspan(tokens_before[from], tokens_before[to] - tokens_before[from]);
  }
  uint32_t ChildOf(const WideNode& node, uint8_t byte) const { return children[node.first + node.bytes.CountBelow(byte)]; }
};

// A trie that grows under a root of depth 0: children are lists in the order of their bytes.
class GrowingTrie {
 public:
  void AddToken(std::string_view bytes, uint32_t token);
  // Adds the subtree of a node, which becomes the root.
  void AddSubtree(const TokenTrie& from, uint32_t root);
  TokenTrie Flat() const;

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  struct Node {
    uint32_t child = kNone, next = kNone;
    uint32_t recent = kNone;  // the child that was used last
    uint8_t byte = 0;
    std::vector<uint32_t> tokens;
  };
  uint32_t Child(uint32_t parent, uint8_t byte);

  std::vector<Node> nodes_{Node{}};
  std::vector<uint32_t> path_;  // by depth
};

}  // namespace onpolicy::grammar
