// Many keys -> an automaton over those that may come next: the keys whose rank is in a range, or those that have not come yet. An object
// with n such keys uses one automaton for all of its states; expressions of the remaining keys would cost n in each state.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/hash-index.h"
#include "grammar/json-schema/key-sets.h"
#include "grammar/regex/automaton.h"

namespace onpolicy::grammar {

class KeyAutomaton : public Automaton {
 public:
  struct Key {
    std::string spelling;  // between its quotation marks, in JSON
    uint32_t rank;         // used by OrderedKeys
    uint32_t tag;          // tag at the end of this key
  };

  uint32_t Next(uint32_t state, uint8_t byte) override;
  bool Accepts(uint32_t state) override { return states_[state].node == kEnded; }
  bool IsTagged() const override { return true; }
  uint32_t TagOf(uint32_t state) const override { return keys_[states_[state].from].tag; }
  ByteSet First(uint32_t state) override;

 protected:
  // The keys must have different spellings. A key ends with its closing quotation mark.
  explicit KeyAutomaton(std::vector<Key> keys);

  const std::vector<Key>& keys() const { return keys_; }
  // Returns the state at the beginning of the keys that `from` and `to` allow, or kDead if there are none.
  uint32_t Start(uint32_t from, uint32_t to);
  // Returns true if `from` and `to` allow a key in [begin, end).
  virtual bool HasKey(uint32_t begin, uint32_t end, uint32_t from, uint32_t to) const = 0;
  // Returns a `from` that allows the same keys of [begin, end), so that states are shared.
  virtual uint32_t Reduced(uint32_t, uint32_t, uint32_t from) const { return from; }

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
    uint32_t from, to;  // allowed keys; behind a key's end, its index among the keys
    bool operator==(const State&) const = default;
  };

  uint32_t StateOf(const State& state);
  uint32_t NodeOf(const Node& node);
  // Returns the node of the keys that continue with a byte, or an empty node.
  Node Child(const Node& node, uint8_t byte) const;
  uint8_t ByteAt(uint32_t key, uint32_t depth) const;

  std::vector<Key> keys_;    // sorted by their spellings, each with the quotation mark
  std::vector<Node> nodes_;  // nodes that states have reached
  HashIndex node_index_, state_index_;
  std::vector<State> states_;
};

// Keys in an order, with different ranks.
class OrderedKeys final : public KeyAutomaton {
 public:
  explicit OrderedKeys(std::vector<Key> keys);
  // Returns the state at the beginning of the keys of ranks `from` to `to`, both included, or kDead if there are none.
  using KeyAutomaton::Start;

 private:
  bool HasKey(uint32_t begin, uint32_t end, uint32_t from, uint32_t to) const override;

  std::vector<std::vector<uint32_t>> ranks_;  // by level: sorted in blocks of 2^level keys
};

// Keys in any order, each of which comes once.
class LooseKeys final : public KeyAutomaton {
 public:
  // In sets, the keys have the numbers from `first` on, in the order of their spellings. `sets` must stay valid.
  LooseKeys(std::vector<Key> keys, const KeySets& sets, uint32_t first) : KeyAutomaton(std::move(keys)), sets_(sets), first_(first) {}
  // Returns the state at the beginning of the keys that are not in `seen`, or kDead if there are none.
  uint32_t Start(KeySet seen) { return KeyAutomaton::Start(seen, 0); }
  // Returns the tags of the keys by their numbers.
  std::vector<uint32_t> Tags() const;

 private:
  bool HasKey(uint32_t begin, uint32_t end, uint32_t seen, uint32_t) const override {
    return sets_.Count(seen, first_ + begin, first_ + end) < end - begin;
  }
  uint32_t Reduced(uint32_t begin, uint32_t end, uint32_t seen) const override {
    return sets_.Count(seen, first_ + begin, first_ + end) == 0 ? 0 : seen;
  }

  const KeySets& sets_;
  uint32_t first_;
};

}  // namespace onpolicy::grammar
