// Many keys in an order -> an automaton over the keys whose rank is in a range. An object with n such keys uses one automaton for all of
// its states; expressions of the remaining keys would cost n in each state.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/hash-index.h"
#include "grammar/regex/automaton.h"

namespace onpolicy::grammar {

class KeyAutomaton final : public Automaton {
 public:
  struct Key {
    std::string spelling;  // between its quotation marks, in JSON
    uint32_t rank;
    uint32_t tag;          // tag at the end of this key
  };
  // The keys must have different spellings and different ranks.
  explicit KeyAutomaton(std::vector<Key> keys);

  // Returns the state at the beginning of the keys of ranks `from` to `to`, both included, or kDead if there are none. A key ends with its
  // closing quotation mark.
  uint32_t Start(uint32_t from, uint32_t to);

  uint32_t Next(uint32_t state, uint8_t byte) override;
  bool Accepts(uint32_t state) override { return states_[state].node == kEnded; }
  bool IsTagged() const override { return true; }
  uint32_t TagOf(uint32_t state) const override { return keys_[states_[state].from].tag; }
  ByteSet First(uint32_t state) override;

 private:
  static constexpr uint32_t kEnded = 0xFFFFFFFFu;
  // A node of the trie: the keys that begin with its bytes, in the order of their spellings.
  struct Node {
    uint32_t begin, end;  // range of the keys
    uint32_t depth;       // number of those bytes
    bool operator==(const Node&) const = default;
  };
  struct State {
    uint32_t node;
    uint32_t from, to;  // ranks; behind a key's end, its index among the keys
    bool operator==(const State&) const = default;
  };

  uint32_t StateOf(const State& state);
  uint32_t NodeOf(const Node& node);
  // Returns the node of the keys that continue with a byte, or an empty node.
  Node Child(const Node& node, uint8_t byte) const;
  uint8_t ByteAt(uint32_t key, uint32_t depth) const;
  // Returns true if a key in [begin, end) has a rank in a range.
  bool HasRank(uint32_t begin, uint32_t end, uint32_t from, uint32_t to) const;

  std::vector<Key> keys_;                     // sorted by their spellings, each with the quotation mark
  std::vector<std::vector<uint32_t>> ranks_;  // by level: sorted in blocks of 2^level keys
  std::vector<Node> nodes_;                   // nodes that states have reached
  HashIndex node_index_, state_index_;
  std::vector<State> states_;
};

}  // namespace onpolicy::grammar
